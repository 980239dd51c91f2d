// SPDX-License-Identifier: Apache-2.0
// A fabric of three tiers on paper: pods of leaves and spines, and superspines in planes, of which each
// joins the spines of one place in their pods. Flows within a pod turn at a spine, others at a
// superspine. One link of each layer is down, one of the upper layer is not seen, and one spine's flows
// all leave by one of its uplinks.
import { down, HOSTS, name, Paper, random, SPEED, up } from './paper.mjs';

const toSuper = (k) => `Ethernet${101 + k}`;

export class Tiers extends Paper {
    /** leaves and spines: of one pod; planes: superspines that each spine reaches. */
    constructor({ pods = 2, leaves = 2, spines = 2, reach = 2, flows = 96, ...more } = {}) {
        super({ leaves: pods * leaves, spines: pods * spines, flows: 0, ...more });
        Object.assign(this, { pods, podLeaves: leaves, podSpines: spines, reach });
        this.flows = this.tierFlows(flows);
        this.topology = this.tierTopology();
        this.kept.clear();
    }

    podOf(leaf) {
        return Math.floor(leaf / this.podLeaves);
    }

    spineOf(pod, place) {
        return pod * this.podSpines + place;
    }

    superOf(spine, k) {
        return (spine % this.podSpines) * this.reach + k;
    }

    tierFlows(n) {
        const r = random(7);
        return Array.from({ length: n }, (_, i) => {
            const a = Math.floor(r() * this.leaves);
            const b = (a + 1 + Math.floor(r() * (this.leaves - 1))) % this.leaves;
            const place = Math.floor(r() * this.podSpines);
            const spine = this.spineOf(this.podOf(a), place);
            const k = Math.floor(r() * this.reach);
            return {
                a, b, ha: Math.floor(r() * HOSTS), hb: Math.floor(r() * HOSTS), sport: 49152 + (i * 7919) % 16384, place, spine,
                k: spine === 0 ? 0 : k, job: 88 + (a % 3), i, bps: (i % 8 === 0 ? 24e9 : 0.4e9) * (0.7 + 0.6 * r()) * Math.min(1, (this.leaves * this.podSpines * 8) / n),
            };
        });
    }

    hops(f) {
        const [pa, pb] = [this.podOf(f.a), this.podOf(f.b)];
        const [sa, sb] = [this.spineOf(pa, f.place), this.spineOf(pb, f.place)];
        const first = [name('leaf', f.a), `Ethernet${1 + f.ha}`, up(f.place)];
        const last = [name('leaf', f.b), up(f.place), `Ethernet${1 + f.hb}`];
        const [toA, toB] = [down(f.a % this.podLeaves), down(f.b % this.podLeaves)];
        if (pa === pb) return [first, [name('spine', sa), toA, toB], last];
        return [first, [name('spine', sa), toA, toSuper(f.k)], [name('super', this.superOf(sa, f.k)), down(pa), down(pb)], [name('spine', sb), toSuper(f.k), toB], last];
    }

    /** Of each cable: its lower and upper end, and the groups of both directions. */
    cables() {
        const found = [];
        for (let l = 0; l < this.leaves; l++)
            for (let place = 0; place < this.podSpines; place++)
                found.push({ low: name('leaf', l), lowPort: up(place), high: name('spine', this.spineOf(this.podOf(l), place)), highPort: down(l % this.podLeaves), tier: 'leaf', above: 'spine' });
        for (let s = 0; s < this.spines; s++)
            for (let k = 0; k < this.reach; k++)
                found.push({ low: name('spine', s), lowPort: toSuper(k), high: name('super', this.superOf(s, k)), highPort: down(Math.floor(s / this.podSpines)), tier: 'spine', above: 'superspine' });
        return found;
    }

    tierTopology() {
        const switches = new Map();
        const add = (kind, count, tier, net) => {
            for (let i = 0; i < count; i++) switches.set(name(kind, i), { name: name(kind, i), tier, addresses: [`${net}.${Math.floor(i / 250)}.${(i % 250) + 1}`], ports: [] });
        };
        add('leaf', this.leaves, 'leaf', '192.0');
        add('spine', this.spines, 'spine', '198.51');
        add('super', this.podSpines * this.reach, 'superspine', '203.0');
        const hosts = [];
        for (let i = 0; i < this.leaves * HOSTS; i++) {
            const leaf = name('leaf', Math.floor(i / HOSTS));
            const port = `Ethernet${1 + (i % HOSTS)}`;
            switches.get(leaf).ports.push({ name: port, ifindex: 1 + (i % HOSTS), speed_bps: SPEED, host: name('gpu', i), source: 'learnt' });
            hosts.push({ name: name('gpu', i), nics: [{ addresses: [`10.${Math.floor(i / HOSTS / 250) + 1}.${Math.floor(i / HOSTS) % 250}.${(i % HOSTS) + 1}`], attach: [{ switch: leaf, port }] }] });
        }
        for (const c of this.cables()) {
            switches.get(c.low).ports.push({ name: c.lowPort, speed_bps: SPEED, peer: c.high, peer_port: c.highPort, group: `${c.low}/up`, source: 'lldp', confirmed: true });
            switches.get(c.high).ports.push({ name: c.highPort, speed_bps: SPEED, peer: c.low, peer_port: c.lowPort, group: `${c.low}/down`, source: 'lldp', confirmed: true });
        }
        return { fabric: 'paper', switches: [...switches.values()], hosts };
    }

    /** The last link of each layer is down. */
    isDownCable(c) {
        return !this.calm && (c.low === name('leaf', this.leaves - 1) ? c.lowPort === up(this.podSpines - 1) : c.low === name('spine', this.spines - 1) && c.lowPort === toSuper(this.reach - 1));
    }

    loads(n) {
        const by = new Map();
        if (!this.podLeaves) return super.loads(n);
        const r = random(n);
        for (const f of this.flows) {
            const bps = f.bps * (0.85 + 0.3 * r());
            for (const [sw, , out] of this.hops(f).slice(0, -1)) {
                const at = by.get(`${sw}/${out}`) ?? { bps: 0, flows: 0 };
                by.set(`${sw}/${out}`, { bps: at.bps + bps, flows: at.flows + 1 });
            }
        }
        return by;
    }

    links(n, want = () => true) {
        const loads = this.loads(n);
        const records = [];
        const sums = new Map();
        for (const c of this.cables()) {
            if (!this.calm && c.low === 'spine2' && c.lowPort === toSuper(0)) continue; // not seen
            for (const [sw, port, peer, peerPort, direction, tier] of [[c.low, c.lowPort, c.high, c.highPort, 'up', c.tier], [c.high, c.highPort, c.low, c.lowPort, 'down', c.above]]) {
                const at = this.isDownCable(c) ? undefined : loads.get(`${sw}/${port}`);
                const group = `${c.low}/${direction}`;
                sums.set(group, (sums.get(group) ?? 0) + (at?.bps ?? 0));
                records.push({
                    schema: 'fabrictrace.link.v1', ...this.span(n), fabric: 'paper', switch: sw, port, peer, peer_port: peerPort, tier, direction, group, flows: at?.flows ?? 0,
                    bytes: Math.round((at?.bps ?? 0) * this.windowMs / 8000), share: at?.bps ?? 0, speed_bps: SPEED, utilization: (at?.bps ?? 0) / SPEED, counter_bytes: Math.round((at?.bps ?? 0) * this.windowMs / 7850), errors: 0,
                });
            }
        }
        for (const l of records) l.share = sums.get(l.group) ? l.share / sums.get(l.group) : 0;
        return records.filter(want);
    }

    imbalance(n) {
        const groups = new Map();
        for (const l of this.links(n)) groups.set(l.group, [...(groups.get(l.group) ?? []), l]);
        const records = [];
        const add = (scope, label, of, groupsIn) => {
            const flows = of.reduce((sum, l) => sum + l.flows, 0);
            const mean = flows / of.length;
            const fim = flows ? of.reduce((sum, l) => sum + Math.abs(l.flows - mean), 0) * 100 / flows : undefined;
            const fault = scope === 'group' && flows > 8 && of.length > 1 && of.filter((l) => l.flows).length === 1;
            records.push({
                schema: 'fabrictrace.imbalance.v1', ...this.span(n), fabric: 'paper', scope, name: label, links: of.length, flows, ...(groupsIn ? { groups: groupsIn, idle_groups: 0 } : {}),
                ...(flows ? { bytes: 1e9, fim, fim_expected: 38, p_value: fault ? 1e-6 : 0.4, max_over_mean: Math.max(...of.map((l) => l.flows)) / mean, verdict: fault ? 'fault' : 'even' } : { verdict: 'idle' }),
            });
        };
        for (const [label, of] of groups) add('group', label, of);
        const all = [...groups.values()].flat();
        for (const [label, tier, direction] of [['leaf/up', 'leaf', 'up'], ['leaf/down', 'spine', 'down'], ['spine/up', 'spine', 'up'], ['spine/down', 'superspine', 'down']]) {
            const of = all.filter((l) => l.tier === tier && l.direction === direction);
            add('layer', label, of, new Set(of.map((l) => l.group)).size);
        }
        add('fabric', 'paper', all, groups.size);
        return records;
    }

    events(n) {
        if (this.calm) return [];
        const w = this.span(n);
        const found = this.cables().filter((c) => this.isDownCable(c)).map((c) => ({
            schema: 'fabrictrace.event.v1', time_ms: w.window_end_ms, fabric: 'paper', kind: 'link_down', severity: 'critical', subject: `${c.low}/${c.lowPort}`,
            message: `the link to ${c.high} ${c.highPort} is down: a port of it is down`,
            evidence: { switch: c.low, port: c.lowPort, peer: c.high, peer_port: c.highPort }, since_ms: w.window_end_ms - 90_000, cleared: false,
        }));
        found.push({
            schema: 'fabrictrace.event.v1', time_ms: w.window_end_ms, fabric: 'paper', kind: 'polarization', severity: 'warning', subject: 'spine1/up', message: `every flow of spine1/up is on one of ${this.reach} links`,
            evidence: { switch: 'spine1', group: 'spine1/up', fim: 100, fim_expected: 38, p_value: 1e-6 }, since_ms: w.window_end_ms - 400_000, cleared: false,
        });
        return found;
    }
}
