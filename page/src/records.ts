// SPDX-License-Identifier: Apache-2.0
// The records of fabrictrace.proto as JSON. A field that is not known is absent.

export interface Flow {
    src: string;
    dst: string;
    sport: number;
    dport: number;
    proto: number;
}

export interface Hop {
    switch?: string;
    in?: string;
    out?: string;
    samples?: number;
    share?: number;
    share_lo?: number;
    in_lag?: string;
    out_lag?: string;
    evidence?: string;
    accuracy?: number;
}

export interface Path {
    window_start_ms?: number;
    window_end_ms?: number;
    flow: Flow;
    role?: string;
    state?: string;
    reason?: string;
    hops?: Hop[];
    candidates?: number;
    shares?: { hops?: Hop[]; share?: number }[];
    likely?: Hop[];
    rate_bps?: number;
    rate_lo_bps?: number;
    rate_hi_bps?: number;
    rate_source?: string;
    bytes?: number;
    messages?: number;
    numbered_samples?: number;
    psn_back_samples?: number;
    nak_samples?: number;
    rnr_samples?: number;
    no_credit_samples?: number;
    src_host?: string;
    dst_host?: string;
    tuple_source?: string;
    qp?: { local?: number; remote?: number };
    pid?: number;
    comm?: string;
    job?: string;
    comm_id?: string;
    src_rank?: number;
    dst_rank?: number;
    first_seen_ms?: number;
    path_since_ms?: number;
    time_ms?: number;
    outer?: Flow;
    source_routed?: boolean;
    vni?: number;
    other_vni?: number;
    rank_candidates?: { comm_id?: string; src_rank?: number; dst_rank?: number }[];
    pairing?: { by?: string; host?: string; device?: string; qp?: number; withdrawn?: boolean };
}

export interface ProbeAnswer {
    ttl?: number;
    sent?: number;
    address?: string;
    switch?: string;
    out?: string;
    out_lag?: string;
    gap?: string;
    rtt_ns?: number;
}

export interface Probe {
    time_ms?: number;
    flow: Flow;
    host?: string;
    uid?: number;
    by_daemon?: boolean;
    refused?: string;
    outcome?: string;
    answers?: ProbeAnswer[];
}

export interface Link {
    window_start_ms?: number;
    window_end_ms?: number;
    switch: string;
    port: string;
    peer?: string;
    peer_port?: string;
    tier?: string;
    direction?: string;
    group?: string;
    flows?: number;
    bytes?: number;
    share?: number;
    speed_bps?: number;
    utilization?: number;
    counter_bytes?: number;
    discards?: number;
    errors?: number;
    ce_marked_share?: number;
    unexplained_bytes?: number;
    pause_in?: number;
    pause_out?: number;
    pfc_in?: number;
    pfc_out?: number;
    queue_max_bytes?: number;
    transit_max_ns?: number;
    numbered_flows?: number;
    resending_flows?: number;
    flaps?: number;
    partial?: boolean;
}

export interface Imbalance {
    window_start_ms?: number;
    window_end_ms?: number;
    scope?: string;
    name?: string;
    links?: number;
    groups?: number;
    idle_groups?: number;
    flows?: number;
    flows_unplaced?: number;
    bytes?: number;
    fim?: number;
    fim_bytes?: number;
    fim_expected?: number;
    p_value?: number;
    max_over_mean?: number;
    cov?: number;
    jain?: number;
    effective_links?: number;
    bottleneck_ratio?: number;
    verdict?: string;
    spine_crossings_avoidable?: number;
    spine_crossings_avoidable_share?: number;
    rail_crossings?: number;
    rail_crossings_share?: number;
    partial?: boolean;
    seen_share?: number;
    missing_partitions?: number[];
    unaccounted_partitions?: number[];
}

export interface Victim {
    flow: Flow;
    rate_bps?: number;
    rate_lo_bps?: number;
    src_host?: string;
    dst_host?: string;
    job?: string;
    src_rank?: number;
    dst_rank?: number;
    comm_id?: string;
    qp?: { local?: number; remote?: number };
    link_evidence?: string;
    numbered_windows?: number;
    resending_windows?: number;
    psn_back_samples?: number;
    nak_samples?: number;
    nak_windows?: number;
}

export interface Evidence {
    switch?: string;
    port?: string;
    peer?: string;
    peer_port?: string;
    group?: string;
    elephants?: number;
    elephants_least?: number;
    elephants_even?: number;
    victims?: Victim[];
    p_value?: number;
    fim?: number;
    fim_expected?: number;
    old_hops?: Hop[];
    new_hops?: Hop[];
    count?: number;
    flow?: Flow;
    host?: string;
    program?: string;
    source?: string;
    reason?: string;
    offset_ms?: number;
    found_peer?: string;
    found_peer_port?: string;
    flows?: number;
    idle_ports?: string[];
    never_chosen?: string[];
    idle_since_ms?: number;
    pairs?: number;
}

export interface Event {
    time_ms?: number;
    kind: string;
    severity?: string;
    subject: string;
    message?: string;
    evidence?: Evidence;
    since_ms?: number;
    cleared?: boolean;
}

export interface Finding {
    switch?: string;
    port?: string;
    host?: string;
    device?: string;
    severity?: string;
    text: string;
    advice?: string;
    since_ms?: number;
}

export interface Port {
    name: string;
    ifindex?: number;
    speed_bps?: number;
    peer?: string;
    peer_port?: string;
    host?: string;
    group?: string;
    source?: string;
    confirmed?: boolean;
    samples?: number;
    flows?: number;
    state?: string;
    down_peer?: string;
    down_peer_port?: string;
    down_since_ms?: number;
}

export interface Switch {
    name: string;
    tier?: string;
    addresses?: string[];
    ports?: Port[];
    lags?: { name: string; members?: string[] }[];
}

export interface Host {
    name: string;
    nics?: { addresses?: string[]; rail?: number; attach?: { switch: string; port: string }[] }[];
}

export interface Topology {
    fabric?: string;
    switches?: Switch[];
    hosts?: Host[];
    open?: { switch: string; port: string }[];
}

export interface Edge {
    src: number;
    dst: number;
    op?: string;
    sent_bytes?: number;
    received_bytes?: number;
    sent_messages?: number;
    received_messages?: number;
    expected_bytes?: number;
    step_median_ns?: number;
    step_max_ns?: number;
}

export interface Member {
    rank: number;
    host?: string;
    pid?: number;
    gpu?: string;
    job?: string;
    closed?: boolean;
    transfers_dropped?: number;
    bytes_dropped?: number;
}

export interface Communicator {
    comm_id: string;
    name?: string;
    ranks?: number;
    members?: Member[];
    edges?: Edge[];
}

export interface Rank extends Member {
    comm_id: string;
    ranks?: number;
    op?: string;
    time_ms?: number;
    slowest_peer?: number;
    slowest_step_median_ns?: number;
    others_step_median_ns?: number;
    slowest_switch?: string;
    slowest_port?: string;
    slowest_port_flows?: number;
    process?: string;
    standing?: boolean;
    number?: number;
    state?: string;
    standing_op?: string;
    transfer?: string;
    transfer_peer?: number;
    transfer_send?: boolean;
}

export interface SecondOpinion {
    source?: string;
    time_ms?: number;
    agrees?: boolean;
    text?: string;
}

export interface Diagnosis {
    schema: string;
    since_ms?: number;
    syndrome?: string;
    severity?: string;
    message?: string;
    job?: string;
    communicator?: string;
    operation?: string;
    sequence?: number;
    rank?: number;
    host?: string;
    gpu?: string;
    pid?: number;
    process?: string;
    peer?: number;
    peer_host?: string;
    /** What the transfer that stands waits for. */
    transfer?: string;
    transfer_since_ms?: number;
    channel?: number;
    qp?: number;
    second_opinions?: SecondOpinion[];
    slowdown?: number;
    waiting?: number;
    wait_chain?: number[];
    ranks?: number;
    ranks_known?: number;
    evidence_for?: string[];
    evidence_against?: string[];
    confidence?: number;
    advice?: string;
    flow?: Flow;
    links?: { switch?: string; port?: string; errors?: number; discards?: number; suspect?: boolean; down?: boolean; shut?: boolean }[];
}

export interface Draws {
    mean?: number;
    min?: number;
    max?: number;
}

export interface PolicyLayer {
    name?: string;
    links?: number;
    fim?: Draws;
    flows_most?: Draws;
}

export interface Policy {
    policy?: string;
    draws?: number;
    layers?: PolicyLayer[];
    slowest_share?: Draws;
    hottest_load?: number;
    load_most?: Draws;
    moves?: Draws;
}

export interface Errors {
    count?: number;
    median?: number;
    p90?: number;
    worst?: number;
}

export interface MovedFlow {
    flow?: Flow;
    src_host?: string;
    dst_host?: string;
    hops_before?: Hop[];
    hops?: Hop[];
}

export interface WhatIf {
    schema: string;
    window_start_ms?: number;
    window_end_ms?: number;
    figures?: Policy;
    flows?: number;
    unresolved?: number;
    sprayed?: number;
    strangers?: number;
    small?: number;
    beyond?: number;
    source_routed?: number;
    /** Of policy plan; of many some. */
    moved?: MovedFlow[];
    error?: { rates?: Errors; limited?: Errors; loads?: Errors };
}

export interface Plan {
    schema: string;
    time_ms?: number;
    job?: string;
    uid?: number;
    stage?: string;
    end?: string;
    ports_given?: number;
    ports_confirmed?: number;
    ports_missed?: number;
    ports_refused?: number;
    since_ms?: number;
}

/** A queue pair that got a port of a plan. */
export interface PlanPort {
    host?: string;
    job?: string;
    flow: Flow;
    plan_time_ms?: number;
    hops_before?: Hop[];
    hops?: Hop[];
    state?: string;
}

export interface Rhythm {
    job?: string;
    samples?: number;
    resolution_ms?: number;
    period_ms?: number;
    regularity?: number;
    exchange?: number;
    longest_pause_ms?: number;
    window_start_ms?: number;
    window_end_ms?: number;
    messages?: number;
    message_bytes?: number;
    numbered_samples?: number;
    psn_back_samples?: number;
    nak_samples?: number;
    rnr_samples?: number;
    no_credit_samples?: number;
}

export interface Spread {
    of?: string;
    job?: string;
    src_host?: string;
    dst_host?: string;
    switch?: string;
    group?: string;
    possible?: number;
    seen?: number;
    effective_paths?: number;
    end_to_end_paths?: number;
    end_to_end_lo?: number;
    end_to_end_hi?: number;
    samples?: number;
    flows?: number;
    sprayed_flows?: number;
    even_p?: number;
    least?: string;
    least_p?: number;
    dead?: string[];
}

export interface Hash {
    switch?: string;
    group?: string;
    members?: string[];
    model?: string;
    accuracy?: number;
    predicted?: number;
    observations?: number;
    inputs?: string[];
    never_chosen?: string[];
    effective_links?: number;
    effective_by_chance?: number;
    hashes_qp?: boolean;
    hashes_outer?: boolean;
    reason?: string;
    more_least?: number;
    few_of?: string[];
}

export interface QueuePair {
    host?: string;
    device?: string;
    port?: number;
    local?: number;
    remote?: number;
    driver?: string;
    state?: string;
    by?: string;
    flow?: Flow;
    tuple_source?: string;
    peer_host?: string;
    peer_device?: string;
    comm_id?: string;
    pid?: number;
    comm?: string;
    job?: string;
    since_ms?: number;
}

export interface Loss {
    time_ms?: number;
    source?: string;
    program?: string;
    stages?: {
        name: string;
        unit?: string;
        received?: number;
        processed?: number;
        pending?: number;
        drops?: { reason: string; count: number }[];
    }[];
}

export interface Window {
    window_start_ms: number;
    window_end_ms: number;
    partial?: boolean;
}

export interface Answer<T> {
    fabric?: string;
    window_start_ms?: number;
    window_end_ms?: number;
    total?: number;
    next?: string;
    records: T[];
}

export interface Explanation extends Answer<Path> {
    reverse?: Path[];
    links?: Link[];
    collisions?: Event[];
}
