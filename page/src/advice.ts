// SPDX-License-Identifier: Apache-2.0
// Of each kind of event: what it is called, what it comes from, and what to do. Pure.

export interface Meaning {
    name: string;
    cause: string;
    advice: string;
}

const MEANINGS: Record<string, Meaning> = {
    collision: {
        name: 'Collision',
        cause: 'The ECMP hash put several elephants on one link while a sibling carries fewer.',
        advice: 'If a job waits for it: other source ports or more queue pairs give its flows other links. If it comes back with every job, look at the group for a fault.',
    },
    polarization: {
        name: 'Polarization',
        cause: 'The flows of a group fall on few of its links, more often than chance gives: hashes that are alike on two tiers, or a group that lacks members.',
        advice: 'Members without any flow are down or out of the group. Else give the tiers different hash functions, and compare the group’s members on the switch with the topology.',
    },
    path_change: {
        name: 'Path change',
        cause: 'A flow left its path for another: a link or route changed, or its source port did.',
        advice: 'Look for a link that went down at that moment; without one, ask for route changes.',
    },
    topology_change: {
        name: 'Topology change',
        cause: 'A link came, went or leads elsewhere.',
        advice: 'Compare with planned work; undo what was not planned.',
    },
    link_down: {
        name: 'Link down',
        cause: 'A port of the link is down, and nobody shut it down.',
        advice: 'Look at the cable, its optics and both ports.',
    },
    link_shut: {
        name: 'Link shut down',
        cause: 'An administrator shut a port of the link down: the port at the other end is down because of that.',
        advice: 'Nothing, if that is planned work; else enable the port.',
    },
    congestion: {
        name: 'Congestion',
        cause: 'Packets that left by the link were marked or discarded, or the port had to wait.',
        advice: 'Look at the link’s flows: too many elephants is a collision, one host that everybody sends to is incast.',
    },
    silent_exporter: {
        name: 'Silent exporter',
        cause: 'A switch sends no samples though its ports carry traffic.',
        advice: 'Switch its sFlow exporter on, and look whether UDP 6343 gets through.',
    },
    loss: {
        name: 'Loss',
        cause: 'Something that was reported did not arrive, or did not fit.',
        advice: 'Figures of that time are incomplete. “Not seen” names the stage and the reason.',
    },
    clock_skew: {
        name: 'Clock skew',
        cause: 'The clock of a program’s host is ahead or behind.',
        advice: 'Look at NTP or PTP there; until then its reports fall into other windows.',
    },
    noncomm_hang: {
        name: 'Rank hangs',
        cause: 'A rank does not enter an operation that the others wait in, or its process or GPU makes no progress.',
        advice: 'Look at its process and host: the network only waits for it.',
    },
    comm_hang: {
        name: 'Communication hangs',
        cause: 'All ranks have entered an operation, and it does not end.',
        advice: 'Look at the links under it and the RDMA ports at both ends.',
    },
    mismatch: {
        name: 'Ranks differ',
        cause: 'Ranks of a communicator call different operations, or in another order.',
        advice: 'A fault of the program: compare what the two ranks call.',
    },
    noncomm_slow: {
        name: 'Slow rank',
        cause: 'A rank takes longer between operations than its like, and the others wait for it.',
        advice: 'Look at its GPU clock, its host and its input; the network only waits for it.',
    },
    comm_slow: {
        name: 'Slow transfers',
        cause: 'Transfers take longer than those of others, counted from when both sides were there.',
        advice: 'Look at the links under it and the RDMA ports at both ends.',
    },
    mixed_slow: {
        name: 'Slow rank and transfers',
        cause: 'One rank is slow in its own work and in transfers.',
        advice: 'Look at its host first.',
    },
    standstill: {
        name: 'Standstill',
        cause: 'A job sends nothing any more, though its queue pairs are there.',
        advice: 'See its log and processes; the plugin would say which rank the others wait for.',
    },
    slowdown: {
        name: 'Slower job',
        cause: 'The period of a job has grown, and it sends as much less a second.',
        advice: 'See events of its hosts and links; the plugin would say which rank it is.',
    },
    miscabling: {
        name: 'Miscabling',
        cause: 'Samples say that a cable leads elsewhere than the topology file or LLDP does.',
        advice: 'Look where the cable ends; correct it, or the topology.',
    },
    underused: {
        name: 'Underused link',
        cause: 'New flows that could take this link take others, far more often than chance does.',
        advice: 'Look whether it is in the group and its weight, and for a polarised hash.',
    },
    packet_loss: {
        name: 'Packet loss',
        cause: 'Flows over this link send packets again, as their packet numbers show; those over its siblings do not. No counter of a switch is needed to see it.',
        advice: 'Look at the optics, the cable and both ports; take the link out of the group until it is clean.',
    },
    detour: {
        name: 'Detour',
        cause: 'A switch sends flows a longer way than there is.',
        advice: 'Look at its routes for that destination: a missing route or a stale metric.',
    },
    plan_withdrawn: {
        name: 'Plan withdrawn',
        cause: 'Samples show a queue pair with the port of a plan on another path, or on no certain one.',
        advice: 'Make a new plan: routing or a hash has changed since this one.',
    },
    sampling_rate: {
        name: 'Sampling rate',
        cause: 'What a switch’s samples add up to is not what its counters say.',
        advice: 'Compare the sampling rate that it reports with the one that it is configured for.',
    },
};

export function meaning(kind: string): Meaning {
    const name = kind.replace(/_/g, ' ');
    return MEANINGS[kind] ?? { name: name.charAt(0).toUpperCase() + name.slice(1), cause: '', advice: '' };
}
