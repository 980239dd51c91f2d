// SPDX-License-Identifier: Apache-2.0
// The fabric as the views look at it: switches by tier, cables between them, and what each direction
// of a cable is: used, idle, down, shut down by an administrator, or not seen. Pure.
import type { Event, Finding, Imbalance, Link, Rank, Switch, Topology } from './records.ts';
import { plural, tenth, words } from './text.ts';

export type LinkState = 'used' | 'idle' | 'down' | 'shut' | 'unseen';

/** One direction: what leaves `switch` by `port`. */
export interface Way {
    key: string;
    switch: string;
    port: string;
    peer: string;
    peerPort: string;
    speed?: number | undefined;
    group?: string | undefined;
    state: LinkState;
    /** Share of its speed. */
    use?: number | undefined;
    /** Times the even share of its group, by bytes. */
    times?: number | undefined;
    link?: Link | undefined;
}

/** A link of two switches, the lower one first. */
export interface Cable {
    low: string;
    high: string;
    up: Way;
    down?: Way | undefined;
}

/** The cables between two tiers: rows are the lower one's switches. */
export interface Layer {
    low: string;
    high: string;
    rows: string[];
    columns: string[];
    cables: Cable[];
}

export interface Fabric {
    name: string;
    switches: Map<string, Switch>;
    tiers: { name: string; switches: string[] }[];
    layers: Layer[];
    ways: Map<string, Way>;
    hostsOf: Map<string, string[]>;
    open: { switch: string; port: string }[];
    counts: Record<LinkState, number>;
    /** No switch has told anything in this window. */
    mute: boolean;
}

const TIERS = ['leaf', 'spine', 'superspine'];
/** What a link carries below this share of its speed is as good as nothing. */
const IDLE_USE = 1e-5;

export function tierRank(tier: string | undefined): number {
    return TIERS.indexOf(tier ?? '');
}

const collator = new Intl.Collator('en', { numeric: true });

/** "leaf2" before "leaf10". */
export function byName(a: string, b: string): number {
    return collator.compare(a, b);
}

export function portKey(sw: string, port: string): string {
    return `${sw}/${port}`;
}

/** What events and doctor say of links and switches. */
export interface Seen {
    down: Set<string>;
    shut: Set<string>;
    silent: Set<string>;
}

export function seenOf(events: Event[], findings: Finding[]): Seen {
    const down = new Set<string>();
    const shut = new Set<string>();
    const silent = new Set<string>();
    for (const e of events) {
        const at = e.evidence;
        if (e.cleared || !at?.switch) continue;
        const of = e.kind === 'link_down' ? down : e.kind === 'link_shut' ? shut : undefined;
        if (of && at.port) {
            of.add(portKey(at.switch, at.port));
            if (at.peer && at.peer_port) of.add(portKey(at.peer, at.peer_port));
        }
        if (e.kind === 'silent_exporter') silent.add(at.switch);
    }
    for (const f of findings)
        if (f.switch && f.port && / is down: /.test(f.text)) (/ is down: an administrator /.test(f.text) ? shut : down).add(portKey(f.switch, f.port));
    return { down, shut, silent };
}

/** Switches that tell of themselves in this window: by a sample or a counter of any of their links. */
function tellers(records: Link[], seen: Seen): Set<string> {
    const found = new Set<string>();
    for (const l of records)
        if ((l.flows || l.bytes || l.counter_bytes !== undefined) && !seen.silent.has(l.switch)) found.add(l.switch);
    return found;
}

function stateOf(way: Way, seen: Seen, telling: Set<string>): LinkState {
    const is = (of: Set<string>) => of.size > 0 && (of.has(way.key) || of.has(portKey(way.peer, way.peerPort)));
    if (is(seen.down)) return 'down';
    if (is(seen.shut)) return 'shut';
    const l = way.link;
    if (!l) return 'unseen';
    const carried = (l.flows ?? 0) > 0 || (way.use ?? 0) > IDLE_USE || (l.bytes ?? 0) > 0;
    if (carried) return 'used';
    // That nothing went, somebody has to say: its counter, or one of its ends, which would have sampled it.
    return l.counter_bytes !== undefined || telling.has(way.switch) || telling.has(way.peer) ? 'idle' : 'unseen';
}

function useOf(l: Link, speed: number | undefined): number | undefined {
    if (l.utilization !== undefined) return l.utilization;
    const ms = (l.window_end_ms ?? 0) - (l.window_start_ms ?? 0);
    return speed && ms > 0 && l.bytes !== undefined ? (l.bytes * 8000) / ms / speed : undefined;
}

function addWays(s: Switch, ways: Map<string, Way>): void {
    for (const p of s.ports ?? []) {
        // One that is down leads nowhere, and is shown all the same.
        const peer = p.peer ?? p.down_peer;
        const peerPort = p.peer ? p.peer_port : p.down_peer_port;
        if (!peer || !peerPort) continue;
        const key = portKey(s.name, p.name);
        ways.set(key, { key, switch: s.name, port: p.name, peer, peerPort, speed: p.speed_bps, group: p.group, state: 'unseen' });
    }
}

/** What a window says of a way. */
function tell(way: Way, link: Link | undefined, sizes: Map<string, number>, seen: Seen, telling: Set<string>): void {
    way.link = link;
    way.speed ??= link?.speed_bps;
    way.group ??= link?.group;
    way.use = link && useOf(link, way.speed);
    way.times = link?.share !== undefined && way.group ? link.share * (sizes.get(way.group) ?? 1) : undefined;
    way.state = stateOf(way, seen, telling);
}

function layersOf(switches: Map<string, Switch>, ways: Map<string, Way>): Layer[] {
    const layers = new Map<string, Layer & { lowSet: Set<string>; highSet: Set<string> }>();
    for (const way of ways.values()) {
        const from = tierRank(switches.get(way.switch)?.tier);
        const to = tierRank(switches.get(way.peer)?.tier);
        // Between equals, and where a tier is not known, the name decides who is below.
        if (from > to || (from === to && byName(way.switch, way.peer) > 0)) continue;
        const low = switches.get(way.switch)?.tier ?? 'unknown';
        const high = switches.get(way.peer)?.tier ?? 'unknown';
        const name = `${low}/${high}`;
        let layer = layers.get(name);
        if (!layer) {
            layer = { low, high, rows: [], columns: [], cables: [], lowSet: new Set(), highSet: new Set() };
            layers.set(name, layer);
        }
        layer.lowSet.add(way.switch);
        layer.highSet.add(way.peer);
        layer.cables.push({ low: way.switch, high: way.peer, up: way, down: ways.get(portKey(way.peer, way.peerPort)) });
    }
    return [...layers.values()]
        .map(({ lowSet, highSet, ...layer }) => ({ ...layer, rows: [...lowSet].sort(byName), columns: [...highSet].sort(byName) }))
        .sort((a, b) => tierRank(a.low) - tierRank(b.low) || tierRank(a.high) - tierRank(b.high));
}

/** The parts of a layer without a link between them: pods below, planes above, or one of all. */
export function partsOf(layer: Layer): Pick<Layer, 'rows' | 'columns'>[] {
    const above = new Map<string, string>();
    const find = (key: string): string => {
        let at = key;
        for (let next = above.get(at); next !== undefined && next !== at; next = above.get(at)) {
            above.set(at, above.get(next) ?? next);
            at = next;
        }
        return at;
    };
    // The same name may stand on both sides where a tier is not known.
    for (const c of layer.cables) above.set(find(`<${c.low}`), find(`>${c.high}`));
    const parts = new Map<string, { rows: string[]; columns: string[] }>();
    const part = (key: string) => {
        const known = parts.get(find(key));
        if (known) return known;
        const fresh = { rows: [], columns: [] };
        parts.set(find(key), fresh);
        return fresh;
    };
    for (const name of layer.rows) part(`<${name}`).rows.push(name);
    for (const name of layer.columns) part(`>${name}`).columns.push(name);
    return [...parts.values()];
}

function tiersOf(switches: Map<string, Switch>): Fabric['tiers'] {
    const by = new Map<string, string[]>();
    for (const s of switches.values()) {
        const tier = s.tier ?? 'unknown';
        const names = by.get(tier);
        if (names) names.push(s.name);
        else by.set(tier, [s.name]);
    }
    return [...by]
        .map(([name, names]) => ({ name, switches: names.sort(byName) }))
        .sort((a, b) => tierRank(a.name) - tierRank(b.name));
}

type Frame = Pick<Fabric, 'name' | 'switches' | 'tiers' | 'layers' | 'ways' | 'hostsOf' | 'open'>;

/** What does not change with a window; made once for each topology. */
const frames = new WeakMap<Topology, Frame>();

function frameOf(topology: Topology): Frame {
    const known = frames.get(topology);
    if (known) return known;
    const switches = new Map((topology.switches ?? []).map((s) => [s.name, s]));
    const ways = new Map<string, Way>();
    const hostsOf = new Map<string, string[]>();
    for (const s of switches.values()) {
        addWays(s, ways);
        const hosts = (s.ports ?? []).flatMap((p) => p.host ?? []);
        if (hosts.length > 0) hostsOf.set(s.name, hosts);
    }
    const frame = {
        name: topology.fabric ?? '', switches, tiers: tiersOf(switches), layers: layersOf(switches, ways), ways, hostsOf,
        open: topology.open ?? [],
    };
    frames.set(topology, frame);
    return frame;
}

/** The fabric in a window. Its ways are those of the last call with the same topology, told anew. */
export function fabricOf(topology: Topology, records: Link[], events: Event[], findings: Finding[]): Fabric {
    const frame = frameOf(topology);
    const links = new Map<string, Link>();
    const sizes = new Map<string, number>();
    for (const l of records) {
        links.set(portKey(l.switch, l.port), l);
        if (l.group) sizes.set(l.group, (sizes.get(l.group) ?? 0) + 1);
    }
    const seen = seenOf(events, findings);
    const telling = tellers(records, seen);
    const counts = { used: 0, idle: 0, down: 0, shut: 0, unseen: 0 };
    for (const way of frame.ways.values()) {
        tell(way, links.get(way.key), sizes, seen, telling);
        counts[way.state]++;
    }
    return { ...frame, counts, mute: telling.size === 0 };
}

/** A drawing of lines is legible up to here; beyond it the matrix is. */
export function isSmall(fabric: Fabric): boolean {
    const cables = fabric.layers.reduce((n, l) => n + l.cables.length, 0);
    const widest = Math.max(0, ...fabric.tiers.map((t) => t.switches.length));
    return cables <= 160 && widest <= 20;
}

const SEVERITIES = ['critical', 'warning', 'info'];

export function severityRank(severity: string | undefined): number {
    const i = SEVERITIES.indexOf(severity ?? 'info');
    return i < 0 ? SEVERITIES.length : i;
}

/** What stands before what is over, then worst, then newest first. */
export function byWorst(a: Event, b: Event): number {
    return Number(a.cleared ?? false) - Number(b.cleared ?? false) ||
        severityRank(a.severity) - severityRank(b.severity) ||
        (b.since_ms ?? b.time_ms ?? 0) - (a.since_ms ?? a.time_ms ?? 0) ||
        byName(a.subject, b.subject);
}

const VERDICTS = ['fault', 'uneven', 'even', 'idle'];
const SCOPES = ['fabric', 'layer', 'group'];

export function verdictRank(verdict: string | undefined): number {
    const i = VERDICTS.indexOf(verdict ?? '');
    return i < 0 ? VERDICTS.length : i;
}

/** The fabric, its layers, then groups, the most surprising first. */
export function byScope(a: Imbalance, b: Imbalance): number {
    return SCOPES.indexOf(a.scope ?? 'group') - SCOPES.indexOf(b.scope ?? 'group') ||
        verdictRank(a.verdict) - verdictRank(b.verdict) ||
        (a.p_value ?? 2) - (b.p_value ?? 2) ||
        byName(a.name ?? '', b.name ?? '');
}

/** What the figures of a window lack: '' where nothing that is known of. */
export function lacks(i: Imbalance): string {
    const texts = [];
    if (i.missing_partitions?.length) texts.push(`${plural(i.missing_partitions.length, 'partition')} of flows missing`);
    if (i.seen_share !== undefined) texts.push(`${tenth(100 * i.seen_share)} % of the observations were taken in`);
    if (i.unaccounted_partitions?.length) texts.push('daemons of an earlier version do not say what they took in');
    return texts.join('; ');
}

/** As the tool says it. */
export function verdictText(i: Imbalance): string {
    switch (i.verdict) {
    case 'fault':
        return i.max_over_mean !== undefined && i.links !== undefined && i.max_over_mean > i.links - 1e-3 && i.scope === 'group'
            ? `fault: every flow on one of ${i.links} links` : 'fault: not explained by chance';
    case 'uneven':
        return 'uneven, may be luck';
    case 'even':
        return 'even';
    case undefined:
    case 'unknown':
        return 'not judged';
    default:
        return i.verdict;
    }
}

/** Which operation a rank stands in, and what that waits for; of a process that does not run, that. As the tool
 * says it; '' where it goes on, or nothing is known of it. */
export function standsIn(r: Rank): { operation: string; state: string } {
    const open = r.standing === true && r.state !== undefined && r.state !== 'finished';
    const halted = r.process !== undefined && r.process !== 'running';
    const peer = r.transfer_peer === undefined ? '' : ` ${r.transfer_send ? 'to' : 'from'} ${r.transfer_peer}`;
    return {
        operation: open && r.number !== undefined ? `${r.standing_op ?? 'operation'} ${r.number}` : '',
        state: halted ? words(r.process) : open ? `${words(r.transfer ?? r.state)}${peer}` : '',
    };
}

/** Of what a figure of a job's links is made: how much longer a flow takes that shares its link. */
export function slowdown(e: Event): number | undefined {
    const { elephants, elephants_even: even } = e.evidence ?? {};
    return elephants && even ? elephants / Math.max(even, 1) : undefined;
}
