// SPDX-License-Identifier: Apache-2.0
// A fabric on paper: a server that answers as fabrictraced does for a generated leaf-spine of any size,
// with flows, collisions, a link that is down, a switch that is silent. For pictures and for measuring
// the page at sizes that no lab has; what the daemon itself says is tested in check_page.mjs.
//
// usage: node paper.mjs --files FOLDER [--leaves N] [--spines N] [--flows N] [--port N]
//                       [--window-ms N] [--calm]
import { createServer } from 'node:http';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const TYPES = { html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', txt: 'text/plain; charset=utf-8' };
export const HOSTS = 2;
const KEPT = 360;

export function random(seed) {
    let a = seed >>> 0;
    return () => {
        a = (a + 0x6d2b79f5) >>> 0;
        let t = Math.imul(a ^ (a >>> 15), a | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
}

export function name(kind, i) {
    return `${kind}${i + 1}`;
}

export const SPEED = 400e9;
export const up = (s) => `Ethernet${49 + s}`;
export const down = (l) => `Ethernet${1 + l}`;
const address = (l, h) => `10.${Math.floor(l / 250) + 1}.${l % 250}.${h + 1}`;

/** As the daemon: from_ms is before the end of the first, to_ms after the start of the last. */
function between(records, query) {
    const [from, to, limit] = ['from_ms', 'to_ms', 'limit'].map((n) => Number(query.get(n) ?? (n === 'from_ms' ? 0 : Infinity)));
    return records.filter((r) => r.window_end_ms > from && r.window_start_ms < to).slice(0, limit);
}

export class Paper {
    constructor({ leaves = 4, spines = 4, flows = 64, windowMs = 10_000, everyMs = windowMs, calm = false, start = Date.now() } = {}) {
        Object.assign(this, { leaves, spines, windowMs, everyMs, calm, lacking: {}, faults: new Map() }); // what a window's figures lack; status by answer, of those that fail
        this.number = Math.floor(start / windowMs);
        this.flows = this.makeFlows(flows);
        this.topology = this.makeTopology();
        this.history = new Map();
        this.kept = new Map();
        for (let n = this.number - KEPT; n <= this.number; n++) this.close(n);
    }

    makeFlows(n) {
        const r = random(42);
        return Array.from({ length: n }, (_, i) => {
            const chosen = !this.calm && i < 24 && i % 8 === 0; // three elephants of one leaf, by one link
            const a = chosen ? 0 : Math.floor(r() * this.leaves);
            const b = (a + 1 + Math.floor(r() * (this.leaves - 1))) % this.leaves;
            const hot = !this.calm && i % 37 === 5;
            return {
                a, b, ha: Math.floor(r() * HOSTS), hb: Math.floor(r() * HOSTS), sport: 49152 + (i * 7919) % 16384,
                spine: chosen ? 1 % this.spines : hot ? a % this.spines : Math.floor(r() * this.spines),
                bps: (i % 8 === 0 ? 24e9 : 0.4e9) * (0.7 + 0.6 * r()) * Math.min(1, (this.leaves * this.spines * 8) / n), job: 88 + (a % 3), i,
            };
        });
    }

    makeTopology() {
        const switches = [];
        for (let l = 0; l < this.leaves; l++) {
            const ports = [];
            for (let h = 0; h < HOSTS; h++) ports.push({ name: `Ethernet${1 + h}`, ifindex: 1 + h, speed_bps: SPEED, host: name('gpu', l * HOSTS + h), source: 'learnt' });
            for (let s = 0; s < this.spines; s++)
                ports.push({ name: up(s), ifindex: 49 + s, speed_bps: SPEED, peer: name('spine', s), peer_port: down(l), group: `${name('leaf', l)}/up`, source: 'lldp', confirmed: true });
            switches.push({ name: name('leaf', l), tier: 'leaf', addresses: [`192.0.2.${l % 250}`], ports });
        }
        for (let s = 0; s < this.spines; s++) {
            const ports = [];
            for (let l = 0; l < this.leaves; l++)
                ports.push({ name: down(l), ifindex: 1 + l, speed_bps: SPEED, peer: name('leaf', l), peer_port: up(s), group: `${name('leaf', l)}/down`, source: 'lldp', confirmed: true });
            switches.push({ name: name('spine', s), tier: 'spine', addresses: [`198.51.100.${s}`], ports });
        }
        const hosts = [];
        for (let l = 0; l < this.leaves; l++)
            for (let h = 0; h < HOSTS; h++)
                hosts.push({ name: name('gpu', l * HOSTS + h), nics: [{ addresses: [address(l, h), `fd00:${l}::${h + 1}`], rail: 0, attach: [{ switch: name('leaf', l), port: `Ethernet${1 + h}` }] }] });
        return { fabric: 'paper', switches, hosts };
    }

    span(n) {
        return { window_start_ms: n * this.windowMs, window_end_ms: (n + 1) * this.windowMs };
    }

    /** What each direction of each link carried in window n. */
    loads(n) {
        const size = this.leaves * this.spines;
        const l = { up: new Float64Array(size), down: new Float64Array(size), upFlows: new Uint32Array(size), downFlows: new Uint32Array(size) };
        const r = random(n);
        for (const f of this.flows) {
            const bps = f.bps * (0.85 + 0.3 * r());
            l.up[f.a * this.spines + f.spine] += bps;
            l.upFlows[f.a * this.spines + f.spine]++;
            l.down[f.b * this.spines + f.spine] += bps;
            l.downFlows[f.b * this.spines + f.spine]++;
        }
        return l;
    }

    isDown(l, s) {
        return !this.calm && l === Math.min(2, this.leaves - 1) && s === this.spines - 1;
    }

    isUnseen(l, s) {
        return !this.calm && l === this.leaves - 1 && s === 0;
    }

    links(n, want = () => true) {
        const w = this.span(n);
        const loads = this.loads(n);
        const records = [];
        for (let l = 0; l < this.leaves; l++)
            for (let s = 0; s < this.spines; s++) {
                if (this.isUnseen(l, s)) continue;
                const i = l * this.spines + s;
                const sum = (of) => of.subarray(l * this.spines, (l + 1) * this.spines).reduce((a, b) => a + b, 0);
                const of = (sw, port, peer, peerPort, dir, tier) => {
                    const group = `${name('leaf', l)}/${dir}`;
                    if (!want({ switch: sw, port, group })) return;
                    const bps = this.isDown(l, s) ? 0 : loads[dir][i];
                    const total = sum(loads[dir]);
                    records.push({
                        schema: 'fabrictrace.link.v1', ...w, fabric: 'paper', switch: sw, port, peer, peer_port: peerPort, tier, direction: dir, group,
                        flows: this.isDown(l, s) ? 0 : loads[`${dir}Flows`][i], bytes: Math.round(bps * this.windowMs / 8000), share: total ? bps / total : 0, speed_bps: SPEED,
                        utilization: bps / SPEED, counter_bytes: Math.round(bps * this.windowMs / 8000 * 1.02), discards: bps / SPEED > 0.5 ? 12 : 0, errors: 0,
                    });
                };
                of(name('leaf', l), up(s), name('spine', s), down(l), 'up', 'leaf');
                of(name('spine', s), down(l), name('leaf', l), up(s), 'down', 'spine');
            }
        return records;
    }

    imbalance(n) {
        const w = this.span(n);
        const loads = this.loads(n);
        const records = [];
        const of = (scope, label, values, groups = 1) => {
            const flows = values.reduce((a, b) => a + b, 0);
            const links = values.length;
            const base = { schema: 'fabrictrace.imbalance.v1', ...w, fabric: 'paper', scope, name: label, links, flows, ...(scope === 'group' ? {} : { groups, idle_groups: 0 }) };
            if (flows === 0) return records.push({ ...base, verdict: 'idle' });
            const mean = flows / links;
            const fim = values.reduce((a, v) => a + Math.abs(v - mean), 0) * 100 / flows;
            const most = Math.max(...values) / mean;
            const expected = 100 * Math.sqrt(2 / Math.PI) * Math.sqrt((1 - 1 / this.spines) / mean);
            const z = fim / expected;
            const p = Math.min(1, Math.exp(-4 * Math.max(0, z - 0.8)));
            records.push({
                ...base, bytes: 1e9, fim, fim_bytes: fim * 1.2, fim_expected: expected, p_value: p, max_over_mean: most, cov: fim / 90, jain: 1 / (1 + (fim / 100) ** 2),
                effective_links: links / (1 + fim / 300), bottleneck_ratio: most * 1.1, verdict: p < 0.001 ? 'fault' : p < 0.05 ? 'uneven' : 'even',
            });
        };
        const slice = (a, l) => [...a.subarray(l * this.spines, (l + 1) * this.spines)];
        for (let l = 0; l < this.leaves; l++) {
            of('group', `${name('leaf', l)}/up`, slice(loads.upFlows, l));
            of('group', `${name('leaf', l)}/down`, slice(loads.downFlows, l));
        }
        of('layer', 'leaf/up', [...loads.upFlows], this.leaves);
        of('layer', 'leaf/down', [...loads.downFlows], this.leaves);
        of('fabric', 'paper', [...loads.upFlows, ...loads.downFlows], 2 * this.leaves);
        return records;
    }

    /** A fabric's figure that is worked out once: the strip of windows asks for all of them. */
    close(n) {
        const wave = 30 + 18 * Math.sin(n / 23) + 9 * Math.sin(n / 5);
        const jump = !this.calm && n > this.number - 40 ? 45 : 0;
        const fim = wave + jump;
        this.history.set(n, {
            schema: 'fabrictrace.imbalance.v1', ...this.span(n), fabric: 'paper', scope: 'fabric', name: 'paper', links: this.spines * this.leaves * 2, groups: this.leaves * 2, flows: 64 + Math.round(10 * Math.sin(n / 9)),
            fim, fim_expected: 38, p_value: fim > 70 ? 1e-5 : 0.4, max_over_mean: 1 + fim / 60, effective_links: this.spines * 3, bottleneck_ratio: 1 + fim / 50,
            fim_bytes: fim * 1.1, verdict: fim > 75 ? 'fault' : fim > 60 ? 'uneven' : 'even',
        });
        for (const k of this.history.keys()) if (k < n - KEPT) this.history.delete(k);
    }

    advance() {
        this.number++;
        this.close(this.number);
    }

    flowOf(f) {
        return { src: address(f.a, f.ha), dst: address(f.b, f.hb), sport: f.sport, dport: 4791, proto: 17 };
    }

    /** From switch to switch: [switch, in, out]. */
    hops(f) {
        return [
            [name('leaf', f.a), `Ethernet${1 + f.ha}`, up(f.spine)], [name('spine', f.spine), down(f.a), down(f.b)],
            [name('leaf', f.b), up(f.spine), `Ethernet${1 + f.hb}`],
        ];
    }

    path(f, n) {
        const hops = this.hops(f);
        return {
            schema: 'fabrictrace.path.v1', ...this.span(n), fabric: 'paper', flow: this.flowOf(f), role: 'data', state: f.i % 29 === 3 ? 'partial' : 'resolved',
            ...(f.i % 29 === 3 ? { reason: 'no sample at a switch with a choice', candidates: this.spines } : { candidates: 1 }),
            hops: hops.map(([sw, into, out], i) => ({ switch: sw, in: into, out, ...(i < hops.length - 1 ? { samples: 118 - 21 * i, share: 1, share_lo: 0.97 } : { samples: 0 }) })),
            rate_bps: Math.round(f.bps), rate_lo_bps: Math.round(f.bps * 0.92), rate_hi_bps: Math.round(f.bps * 1.08), rate_source: 'sflow', bytes: Math.round(f.bps * this.windowMs / 8000),
            src_host: name('gpu', f.a * HOSTS + f.ha), dst_host: name('gpu', f.b * HOSTS + f.hb), tuple_source: 'observed', qp: { local: 17 + f.i, remote: 24 + f.i }, pid: 4000 + f.i,
            comm: 'train.py', job: String(f.job), comm_id: `c0ffee${f.job}`, src_rank: f.a * HOSTS + f.ha, dst_rank: f.b * HOSTS + f.hb, first_seen_ms: (n - 40) * this.windowMs, path_since_ms: (n - 38) * this.windowMs,
        };
    }

    events(n) {
        if (this.calm) return [];
        const w = this.span(n);
        const big = new Map();
        for (const f of this.flows.filter((x) => x.bps > 4e9 || x.i % 8 === 0)) {
            const key = `${name('leaf', f.a)}/${up(f.spine)}`;
            big.set(key, [...(big.get(key) ?? []), f]);
        }
        const events = [...big].filter(([, fs]) => fs.length > 1).sort((a, b) => b[1].length - a[1].length).slice(0, 12).map(([key, fs]) => ({
            schema: 'fabrictrace.event.v1', time_ms: w.window_end_ms, fabric: 'paper', kind: 'collision', severity: fs.length > 3 ? 'critical' : 'warning', subject: key,
            message: `${fs.length} elephants on ${key.replace('/', ' ')}, the even share is 1`,
            evidence: {
                switch: key.split('/')[0], port: key.split('/')[1], peer: name('spine', fs[0].spine), peer_port: down(fs[0].a), group: `${key.split('/')[0]}/up`, elephants: fs.length, elephants_least: 0, elephants_even: 1,
                victims: fs.slice(0, 8).map((f) => ({ flow: this.flowOf(f), rate_bps: Math.round(f.bps), src_host: name('gpu', f.a * HOSTS + f.ha), dst_host: name('gpu', f.b * HOSTS + f.hb), job: String(f.job), src_rank: f.a * HOSTS + f.ha, dst_rank: f.b * HOSTS + f.hb })),
            },
            since_ms: w.window_end_ms - 400_000, cleared: false,
        }));
        const l = Math.min(2, this.leaves - 1);
        events.push({
            schema: 'fabrictrace.event.v1', time_ms: w.window_end_ms, fabric: 'paper', kind: 'link_down', severity: 'critical', subject: `${name('leaf', l)}/${up(this.spines - 1)}`,
            message: `the link to ${name('spine', this.spines - 1)} ${down(l)} is down: a port of it is down`,
            evidence: { switch: name('leaf', l), port: up(this.spines - 1), peer: name('spine', this.spines - 1), peer_port: down(l) }, since_ms: w.window_end_ms - 90_000, cleared: false,
        });
        return events;
    }

    /** Active, or over, between two moments. */
    over() {
        return this.events(this.number);
    }

    findings() {
        if (this.calm) return [];
        return [
            { switch: name('leaf', this.leaves - 1), severity: 'warning', text: 'no sample for 7 windows, though its ports carried traffic', advice: 'enable its sFlow exporter, and check that UDP 6343 is not blocked', since_ms: (this.number - 7) * this.windowMs },
            { severity: 'info', text: "fabrictrace-switchpoll 'poll1' lost 12 of 90000 datagrams: sequence_gap", advice: "datagrams are lost between switch and poller: look at the network's drops" },
        ];
    }

    ranks() {
        const records = [];
        const n = Math.min(this.leaves * HOSTS, 64);
        for (let r = 0; r < n; r++)
            records.push({
                comm_id: 'c0ffee88', ranks: n, job: '88', rank: r, host: name('gpu', r), pid: 4000 + r, gpu: '0000:17:00.0', op: 'AllReduce', time_ms: this.span(this.number).window_end_ms,
                ...(r % 5 === 0 ? { slowest_peer: (r + 1) % n, slowest_step_median_ns: 183000 - r * 900, others_step_median_ns: 48000, slowest_switch: name('leaf', Math.floor(r / HOSTS)), slowest_port: up(0), slowest_port_flows: 3 } : {}),
            });
        return records;
    }

    matrix() {
        const ranks = this.ranks();
        const n = ranks.length;
        const edges = [];
        for (let r = 0; r < n; r++)
            for (const d of [1, 2, 4])
                edges.push({ src: r, dst: (r + d) % n, op: 'AllReduce', sent_bytes: Math.round(1.5e9 / d), received_bytes: Math.round(1.5e9 / d), sent_messages: 15, received_messages: 15, expected_bytes: Math.round(1.5e9 / d), step_median_ns: 48000 + (r % 5 === 0 ? 135000 : 0), step_max_ns: 912000 });
        return [{ comm_id: 'c0ffee88', name: 'world', ranks: n, members: ranks.map(({ rank, host, pid, job }) => ({ rank, host, pid, job })), edges }];
    }

    at(query) {
        const at = Number(query.get('at_ms') ?? 0);
        return at ? Math.max(this.number - KEPT, Math.min(this.number, Math.floor(at / this.windowMs))) : this.number;
    }

    paths(query) {
        const want = (f) => {
            const sw = query.get('switch');
            const port = query.get('port');
            const host = query.get('host');
            const job = query.get('job');
            const state = query.get('state');
            return (!sw || this.hops(f).some(([s, , p]) => s === sw && (!port || p === port))) && (!job || String(f.job) === job) &&
                (!host || [name('gpu', f.a * HOSTS + f.ha), name('gpu', f.b * HOSTS + f.hb), address(f.a, f.ha), address(f.b, f.hb)].includes(host)) &&
                (!state || (f.i % 29 === 3 ? 'partial' : 'resolved') === state);
        };
        const found = this.flows.filter(want).sort((x, y) => y.bps - x.bps);
        return { total: found.length, records: found.slice(0, Number(query.get('limit') ?? 10000)).map((f) => this.path(f, this.number)) };
    }

    explain(query) {
        const m = /^\[?([0-9a-f.:]+?)\]?:(\d+)-\[?([0-9a-f.:]+?)\]?$/.exec(query.get('flow') ?? '');
        const f = m && this.flows.find((x) => address(x.a, x.ha) === m[1] && x.sport === Number(m[2]) && address(x.b, x.hb) === m[3]);
        if (!f) return undefined;
        const p = this.path(f, this.number);
        const keys = new Set(p.hops.map((h) => `${h.switch}/${h.out}`));
        return {
            total: 1, records: [p], reverse: [{ ...p, flow: { ...p.flow, src: p.flow.dst, dst: p.flow.src }, role: 'ack' }],
            links: this.links(this.number, (l) => keys.has(`${l.switch}/${l.port}`)), collisions: this.events(this.number).filter((e) => keys.has(e.subject)),
        };
    }

    past(query) {
        const key = query.get('key') ?? '';
        const numbers = [...this.history.keys()];
        switch (query.get('kind')) {
        case 'imbalance':
            return numbers.map((n) => ({ ...this.history.get(n), scope: key.split('/')[0], name: key.slice(key.indexOf('/') + 1) }));
        case 'link':
            return numbers.map((n) => ({ ...this.span(n), switch: key.split('/')[0], port: key.slice(key.indexOf('/') + 1), utilization: 0.25 + 0.2 * Math.sin(n / 11) }));
        case 'path': {
            const [src, dst, sport] = key.split(',');
            const f = this.flows.find((x) => address(x.a, x.ha) === src && address(x.b, x.hb) === dst && x.sport === Number(sport));
            return f ? [this.path({ ...f, spine: (f.spine + 1) % this.spines }, this.number - 50), this.path(f, this.number - 3)] : [];
        }
        default:
            return [];
        }
    }

    /** The answer as text; the large ones are made once for each window. */
    text(what, query) {
        const key = `${what}?${query}@${this.number}`;
        if (!this.kept.has(key)) {
            const answer = this.answer(what, query);
            if (!['links', 'imbalance', 'topology'].includes(what) || this.leaves < 100) return answer && JSON.stringify(answer);
            this.kept.clear();
            for (const [w, q] of [['links', ''], ['imbalance', ''], ['topology', '']])
                this.kept.set(`${w}?${q}@${this.number}`, JSON.stringify(this.answer(w, new URLSearchParams(q))));
        }
        return this.kept.get(key);
    }

    answer(what, query) {
        const n = this.at(query);
        const head = { fabric: 'paper', ...this.span(n) };
        const list = (records) => ({ ...head, total: records.length, records });
        switch (what) {
        case 'topology':
            return this.topology;
        case 'links':
            return list(this.links(n));
        case 'imbalance': {
            const records = this.imbalance(n);
            const kept = this.history.get(n);
            return list(records.map((r) => ({ ...r, ...(r.scope === 'fabric' ? { ...kept, links: r.links } : {}), ...this.lacking })));
        }
        case 'events':
            return list((query.get('from_ms') ? this.over(query) : this.events(n)).filter((e) => !query.get('kind') || e.kind === query.get('kind')));
        case 'doctor':
            return list(this.findings());
        case 'loss':
            return list([{ schema: 'fabrictrace.loss.v1', source: 'poll1', program: 'fabrictrace-switchpoll', stages: [{ name: 'sflow', unit: 'datagrams', received: 90000, processed: 89988, pending: 0, drops: [{ reason: 'sequence_gap', count: 12 }] }] }]);
        case 'ranks':
            return list(this.ranks());
        case 'diagnoses':
            return list(!this.calm && ['88', null].includes(query.get('job')) ? [{
                schema: 'fabrictrace.diagnosis.v1', time_ms: this.span(this.number).window_end_ms, since_ms: this.span(this.number - 3).window_end_ms, syndrome: 'comm_hang', severity: 'critical',
                message: 'rank 1 on gpu01 hangs in communication', job: '88', communicator: 'c0ffee88', operation: 'AllReduce', sequence: 4711, rank: 1, host: name('gpu', 1), pid: 4001, peer: 2, peer_host: name('gpu', 2),
                waiting: 3, ranks_waiting: [0, 3, 2], wait_chain: [3, 2, 1], evidence_for: ['its transfer to rank 2 stands'], evidence_against: ['no counters of its host'], confidence: 0.9, advice: 'Look at the links between them.',
                links: [{ switch: 'leaf1', port: 'Ethernet49', peer: 'spine1', peer_port: 'Ethernet1', errors: 411, discards: 0, suspect: true }],
            }] : []);
        case 'plans':
            return list(query.get('job') === '88' ? [
                { schema: 'fabrictrace.plan.v1', time_ms: this.span(this.number - 9).window_end_ms, job: '88', uid: 1000, stage: 'withdrawn', end: 'contradicted', ports_given: 62, ports_confirmed: 58, ports_missed: 1, ports_refused: 2, hosts: 8, hosts_ended: 8, since_ms: this.span(this.number - 3).window_end_ms },
                { schema: 'fabrictrace.plan.v1', time_ms: this.span(this.number - 2).window_end_ms, job: '88', uid: 1000, stage: 'confirmed', ports_given: 64, ports_confirmed: 64, ports_missed: 0, ports_refused: 0, hosts: 8, hosts_ended: 0, since_ms: this.span(this.number - 1).window_end_ms },
            ] : []);
        case 'moves': {
            const path = (spine) => [{ switch: 'leaf1', in: 'Ethernet1', out: up(spine - 1) }, { switch: `spine${spine}`, in: 'Ethernet1', out: 'Ethernet2' }, { switch: 'leaf2', in: up(spine - 1), out: 'Ethernet1' }];
            const move = (sport, state, more) => ({ schema: 'fabrictrace.plan_port.v1', job: '88', host: 'gpu1', flow: { src: '10.1.0.1', dst: '10.1.1.1', sport, dport: 4791, proto: 17 }, outcome: 'label', state, hops: path(2), plan_time_ms: this.span(this.number - 2).window_end_ms, ...more });
            return list(query.get('job') === '88' ? [move(50001, 'confirmed', { hops_before: path(1) }), move(50002, 'awaited', {})] : []);
        }
        case 'whatif': {
            const flow = (port) => ({ src: '10.1.0.1', dst: '10.1.1.1', sport: port, dport: 4791, proto: 17 });
            const path = (spine) => [{ switch: 'leaf1', in: 'Ethernet1', out: up(spine - 1) }, { switch: `spine${spine}`, in: 'Ethernet1', out: 'Ethernet2' }, { switch: 'leaf2', in: up(spine - 1), out: 'Ethernet1' }];
            const all = (x) => ({ mean: x, min: x, max: x });
            const base = { schema: 'fabrictrace.whatif.v1', ...this.span(n), flows: 80, error: { rates: { count: 80, median: 0.01, p90: 0.02, worst: 0.04 }, limited: { count: 0 }, loads: { count: 9, median: 0, p90: 0, worst: 0 } } };
            const policy = (name, load, moves) => ({ ...base, figures: { policy: name, draws: 1, load_most: all(load), slowest_share: all(1 / load), ...(moves === undefined ? {} : { moves: all(moves) }) } });
            return list([{ ...base, figures: { policy: 'measured', hottest_load: 0.9 } }, policy('observed', 2, 0), { ...policy('plan', 1, 66), moved: [...Array(64).keys()].map((i) => ({ flow: flow(50000 + i), src_host: 'gpu01', dst_host: 'gpu05', hops_before: path(1), hops: path(2) })) }]);
        }
        case 'probes':
            return list(query.get('flow') ? [{
                schema: 'fabrictrace.probe.v1', time_ms: this.span(this.number).window_end_ms, host: 'gpu01', flow: {}, dst_qp: 291, switches: 3, by_daemon: true, outcome: 'gaps',
                answers: [{ ttl: 1, sent: 1, address: '10.1.0.254', switch: 'leaf1', gap: 'next' }, { ttl: 2, sent: 3, gap: 'silent' }],
            }] : []);
        case 'rhythms':
            return list(query.get('job') === '88' ? [{ schema: 'fabrictrace.rhythm.v1', ...this.span(this.number), job: '88', samples: 4711, resolution_ms: 1000, period_ms: 12300, regularity: 0.81, exchange: 0.42, messages: 4000, message_bytes: 1048576000, numbered_samples: 900, psn_back_samples: 18, nak_samples: 2, no_credit_samples: 7 }]
                : query.get('job') === '89' ? [{ schema: 'fabrictrace.rhythm.v1', ...this.span(this.number), job: '89', samples: 900, resolution_ms: 1000 }] : []);
        case 'spread':
            return list(query.get('job') === '88' ? [
                { schema: 'fabrictrace.spread.v1', ...this.span(this.number), of: 'job', job: '88', switch: 'leaf2', group: 'leaf2/up', possible: 4, seen: 4, effective_paths: 3.4, samples: 812, flows: 9, even_p: 0.31, least: up(2), least_p: 0.5 },
                { schema: 'fabrictrace.spread.v1', ...this.span(this.number), of: 'job', job: '88', switch: 'leaf1', group: 'leaf1/up', possible: 4, seen: 3, effective_paths: 2.8, end_to_end_paths: 10.2, end_to_end_lo: 8.1, end_to_end_hi: 12.4, samples: 990, flows: 40, sprayed_flows: 2, even_p: 1e-5, least: up(3), least_p: 1e-5, dead: [up(3)] },
            ] : []);
        case 'hashes':
            return list(query.get('group') === 'leaf1/up' ? [{ schema: 'fabrictrace.hash.v1', switch: 'leaf1', group: 'leaf1/up', members: [0, 1, 2, 3].map(up), model: 'linear', accuracy: 0.98, predicted: 400, observations: 612, inputs: ['src', 'sport'], never_chosen: [up(3)] }] : []);
        case 'matrix':
            return list(this.matrix());
        case 'qps':
            return list(this.flows.slice(0, 3).map((f) => ({ host: query.get('host') ?? 'gpu1', device: 'mlx5_0', port: 1, local: 17 + f.i, remote: 24 + f.i, driver: 'mlx5', state: 'paired', by: 'wire', flow: this.flowOf(f), pid: 4121, comm: 'train.py', job: '88' })));
        case 'paths':
            return { ...head, ...this.paths(query) };
        case 'explain': {
            const found = this.explain(query);
            return found && { ...head, ...found };
        }
        case 'windows':
            return list(between([...this.history.keys()].map((k) => this.span(k)), query));
        case 'history':
            return list(between(this.past(query), query));
        default:
            return undefined;
        }
    }
}

function serve(paper, files, port = 0) {
    const streams = new Set();
    const server = createServer((request, response) => {
        const url = new URL(request.url, 'http://localhost');
        const api = /^\/api\/v1\/(\w+)$/.exec(url.pathname);
        if (api?.[1] === 'stream') {
            response.writeHead(200, { 'Content-Type': 'text/event-stream' });
            response.write(': here\n\n');
            streams.add(response);
            request.on('close', () => streams.delete(response));
            return;
        }
        const fault = paper.faults.get(api?.[1]);
        if (fault) {
            response.writeHead(fault, { 'Content-Type': 'application/problem+json' });
            response.end(JSON.stringify({ type: 'about:blank', title: 'Service Unavailable', status: fault, detail: 'too much is in progress at once' }));
            return;
        }
        if (api) {
            const body = paper.text(api[1], url.searchParams);
            response.writeHead(body ? 200 : 404, { 'Content-Type': body ? 'application/json' : 'application/problem+json' });
            response.end(body ? body : JSON.stringify({ type: 'about:blank', title: 'Not Found', status: 404, detail: 'this flow is not known: neither a switch nor a host reports it' }));
            return;
        }
        const file = join(files, url.pathname === '/' ? 'index.html' : url.pathname.slice(1));
        if (!existsSync(file) || url.pathname.includes('..')) {
            response.writeHead(404);
            response.end();
            return;
        }
        response.writeHead(200, { 'Content-Type': TYPES[file.split('.').pop()], 'Content-Security-Policy': "default-src 'self'" });
        response.end(readFileSync(file));
    });
    paper.tell = () => {
        for (const s of streams) s.write(`event: window\ndata: ${JSON.stringify(paper.span(paper.number))}\n\n`);
    };
    const timer = setInterval(() => {
        paper.advance();
        paper.tell();
    }, paper.everyMs);
    server.on('close', () => clearInterval(timer));
    return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server)));
}

export const STILL_MS = 3_600_000; // no window closes meanwhile

/** Serves the page in files over a fabric while work(url, paper) is done. */
export async function withPaper(paper, files, work) {
    const server = await serve(paper, files);
    try {
        await work(`http://127.0.0.1:${server.address().port}/`, paper);
    } finally {
        server.closeAllConnections();
        server.close();
    }
}

function option(label, standard) {
    const at = process.argv.indexOf(`--${label}`);
    return at < 0 ? standard : process.argv[at + 1];
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
    const paper = new Paper({
        leaves: Number(option('leaves', 4)), spines: Number(option('spines', 4)), flows: Number(option('flows', 64)),
        windowMs: Number(option('window-ms', 10000)), calm: process.argv.includes('--calm'),
    });
    const server = await serve(paper, option('files', '.'), Number(option('port', 0)));
    console.log(`http://127.0.0.1:${server.address().port}/`);
}
