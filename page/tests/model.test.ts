// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Memory } from '../src/history.ts';
import { byScope, byWorst, fabricOf, isSmall, lacks, partsOf, slowdown, standsIn, verdictText, type Cable } from '../src/model.ts';
import type { Event, Imbalance, Link, Switch, Topology } from '../src/records.ts';

function leafSpine(leaves: number, spines: number): Topology {
    const switches: Switch[] = [];
    for (let l = 1; l <= leaves; l++)
        switches.push({ name: `leaf${l}`, tier: 'leaf', ports: Array.from({ length: spines }, (_, s) => ({ name: `u${s + 1}`, speed_bps: 1e11, peer: `spine${s + 1}`, peer_port: `d${l}`, group: `leaf${l}/up` })) });
    for (let s = 1; s <= spines; s++)
        switches.push({ name: `spine${s}`, tier: 'spine', ports: Array.from({ length: leaves }, (_, l) => ({ name: `d${l + 1}`, speed_bps: 1e11, peer: `leaf${l + 1}`, peer_port: `u${s}`, group: `leaf${l + 1}/down` })) });
    return { fabric: 'lab', switches };
}

const link = (sw: string, port: string, more: Partial<Link> = {}): Link => ({ switch: sw, port, window_start_ms: 0, window_end_ms: 10_000, group: `${sw}/up`, ...more });

test('a leaf-spine: tiers, one layer, cables with both ways', () => {
    const f = fabricOf(leafSpine(12, 2), [], [], []);
    assert.deepEqual(f.tiers.map((t) => [t.name, t.switches.length]), [['leaf', 12], ['spine', 2]]);
    assert.equal(f.layers.length, 1);
    assert.equal(f.layers[0]?.cables.length, 24);
    assert.deepEqual(f.layers[0]?.rows.slice(0, 3), ['leaf1', 'leaf2', 'leaf3']);
    for (const c of f.layers[0]?.cables ?? []) {
        assert.equal(c.up.switch, c.low);
        assert.equal(c.down?.switch, c.high);
    }
    assert.ok(isSmall(f));
    assert.ok(!isSmall(fabricOf(leafSpine(512, 32), [], [], [])));
});

test('used, idle, down, unseen', () => {
    const records = [
        link('leaf1', 'u1', { utilization: 0.4, flows: 3, share: 0.75 }), link('leaf1', 'u2', { flows: 0, bytes: 0, utilization: 0, share: 0.25 }),
        link('leaf2', 'u1', { flows: 9, utilization: 0.5 }), link('spine1', 'd1', { bytes: 12.5e9 }), link('spine1', 'd2', { flows: 0 }),
    ];
    const down: Event = { kind: 'link_down', subject: 'leaf2/u1', evidence: { switch: 'leaf2', port: 'u1', peer: 'spine1', peer_port: 'd2' } };
    const f = fabricOf(leafSpine(2, 2), records, [down], []);
    const state = (key: string) => f.ways.get(key)?.state;
    assert.equal(state('leaf1/u1'), 'used');
    assert.equal(f.ways.get('leaf1/u1')?.times, 1.5);
    assert.equal(state('leaf1/u2'), 'idle');
    assert.equal(state('leaf2/u1'), 'down');
    assert.equal(state('spine1/d2'), 'down');
    assert.equal(state('leaf2/u2'), 'unseen');
    assert.equal(f.ways.get('spine1/d1')?.use, 0.1);
    assert.deepEqual(f.counts, { used: 2, idle: 1, down: 2, shut: 0, unseen: 3 });
    const over = fabricOf(leafSpine(2, 2), records, [{ ...down, cleared: true }], []);
    assert.equal(over.ways.get('leaf2/u1')?.state, 'used');
});

test('a link between switches that send no samples and no counters is not idle: it is not seen', () => {
    const silent = (sw: string): Event => ({ kind: 'silent_exporter', subject: sw, evidence: { switch: sw } });
    const records = [link('leaf1', 'u1', { flows: 0, bytes: 0 }), link('leaf1', 'u2', { flows: 0, bytes: 0, counter_bytes: 0 })];
    const f = fabricOf(leafSpine(1, 2), records, ['leaf1', 'spine1', 'spine2'].map(silent), []);
    assert.equal(f.ways.get('leaf1/u1')?.state, 'unseen');
    assert.equal(f.ways.get('leaf1/u2')?.state, 'idle');
});

test('idle is what somebody vouches for: where nobody tells anything, nothing is seen', () => {
    const quiet = [link('leaf1', 'u1', { flows: 0, bytes: 0 }), link('spine1', 'd1', { flows: 0, bytes: 0 }), link('leaf2', 'u1', { flows: 0, bytes: 0 })];
    const none = fabricOf(leafSpine(2, 1), quiet, [], []);
    assert.ok(none.mute);
    assert.equal(none.ways.get('leaf1/u1')?.state, 'unseen');
    const t = leafSpine(2, 1);
    const one = fabricOf(t, [...quiet, link('spine1', 'd2', { flows: 1 })], [], []);
    assert.ok(!one.mute);
    assert.equal(one.ways.get('leaf1/u1')?.state, 'idle', 'the spine would have sampled it');
    const then = fabricOf(t, quiet, [], []);
    assert.equal(then.ways.get('spine1/d2')?.state, 'unseen', 'told anew in each window');
    assert.equal(then.layers, one.layers, 'what does not change is made once');
});

test('the doctor knows of links that are down, too', () => {
    const f = fabricOf(leafSpine(1, 1), [link('leaf1', 'u1', { flows: 1 })], [], [{ switch: 'leaf1', port: 'u1', text: 'the link to spine1 d1 is down: a port of it is down' }]);
    assert.equal(f.ways.get('leaf1/u1')?.state, 'down');
});

test('what an administrator shut down is not down, at either end', () => {
    const shut: Event = { kind: 'link_shut', severity: 'info', subject: 'leaf2/u1', evidence: { switch: 'leaf2', port: 'u1', peer: 'spine1', peer_port: 'd2' } };
    const f = fabricOf(leafSpine(2, 2), [], [shut], [{ switch: 'leaf1', port: 'u1', text: 'the link to spine1 d1 is down: an administrator shut down spine1 d1' }]);
    for (const key of ['leaf2/u1', 'spine1/d2', 'leaf1/u1', 'spine1/d1']) assert.equal(f.ways.get(key)?.state, 'shut', key);
    assert.equal(f.counts.shut, 4);
    assert.equal(f.counts.down, 0);
    const over = fabricOf(leafSpine(2, 2), [], [{ ...shut, cleared: true }], []);
    assert.equal(over.counts.shut, 0);
});

test('a link that is down, and so leads nowhere, is shown where it led', () => {
    const t = leafSpine(2, 2);
    const cut = (sw: string, port: string) => {
        const p = t.switches?.find((s) => s.name === sw)?.ports?.find((q) => q.name === port);
        if (p) Object.assign(p, { down_peer: p.peer, down_peer_port: p.peer_port, state: 'down', peer: undefined, peer_port: undefined, group: undefined });
    };
    cut('leaf1', 'u1');
    cut('spine1', 'd1');
    const f = fabricOf(t, [], [], [{ switch: 'leaf1', port: 'u1', text: 'the link to spine1 d1 is down: a port of it is down' }]);
    assert.equal(f.ways.get('leaf1/u1')?.peer, 'spine1');
    assert.equal(f.ways.get('spine1/d1')?.state, 'down');
    assert.equal(f.layers[0]?.cables.length, 4);
});

test('three tiers make two layers; a link to nowhere known makes none', () => {
    const t = leafSpine(2, 2);
    t.switches?.push({ name: 'super1', tier: 'superspine', ports: [{ name: 'p1', peer: 'spine1', peer_port: 'x1' }] });
    t.switches?.find((s) => s.name === 'spine1')?.ports?.push({ name: 'x1', peer: 'super1', peer_port: 'p1' });
    t.switches?.push({ name: 'odd', ports: [{ name: 'p', peer: 'gone', peer_port: 'q' }] });
    const f = fabricOf(t, [], [], []);
    assert.deepEqual(f.layers.filter((l) => l.low !== 'unknown').map((l) => `${l.low}/${l.high}`), ['leaf/spine', 'spine/superspine']);
});

test('a layer falls into the parts that no link joins', () => {
    const cable = (low: string, high: string): Cable => ({ low, high, up: { key: `${low}/${high}`, switch: low, port: high, peer: high, peerPort: low, state: 'used' } });
    const layer = (pairs: [string, string][]) => ({
        low: 'leaf', high: 'spine', cables: pairs.map(([a, b]) => cable(a, b)),
        rows: [...new Set(pairs.map(([a]) => a))], columns: [...new Set(pairs.map(([, b]) => b))],
    });
    const pods: [string, string][] = [['l1', 's1'], ['l1', 's2'], ['l2', 's2'], ['l3', 's3'], ['l4', 's4'], ['l4', 's3']];
    assert.deepEqual(partsOf(layer(pods)), [{ rows: ['l1', 'l2'], columns: ['s1', 's2'] }, { rows: ['l3', 'l4'], columns: ['s3', 's4'] }]);
    assert.equal(partsOf(layer([...pods, ['l2', 's4']])).length, 1);
    assert.deepEqual(partsOf(layer([['x', 'y'], ['y', 'x']])), [{ rows: ['x'], columns: ['y'] }, { rows: ['y'], columns: ['x'] }], 'the same names on both sides');
    // A chain as long as a large fabric, joined from its far end.
    const chain = Array.from({ length: 20_000 }, (_, i): [string, string] => [`l${20_000 - i}`, `s${20_000 - i}`]);
    const joined = chain.flatMap(([a, b], i): [string, string][] => [[a, b], [a, chain[i + 1]?.[1] ?? b]]);
    assert.equal(partsOf(layer(chain)).length, 20_000);
    assert.equal(partsOf(layer(joined)).length, 1);
});

test('worst first', () => {
    const e = (severity: string, since_ms: number, cleared = false): Event => ({ kind: 'x', subject: `${severity}${since_ms}`, severity, since_ms, cleared });
    const events = [e('info', 9), e('critical', 1, true), e('warning', 5), e('warning', 7), e('critical', 2)];
    assert.deepEqual(events.sort(byWorst).map((x) => x.subject), ['critical2', 'warning7', 'warning5', 'info9', 'critical1']);
    const groups = [{ scope: 'group', name: 'b', verdict: 'even' }, { scope: 'group', name: 'a', verdict: 'fault' }, { scope: 'fabric', name: 'lab', verdict: 'idle' }];
    assert.deepEqual(groups.sort(byScope).map((g) => g.name), ['lab', 'a', 'b']);
});

test('verdicts and what a collision costs', () => {
    assert.equal(verdictText({ scope: 'group', verdict: 'fault', links: 4, max_over_mean: 4 }), 'fault: every flow on one of 4 links');
    assert.equal(verdictText({ scope: 'fabric', verdict: 'fault', links: 4, max_over_mean: 4 }), 'fault: not explained by chance');
    assert.equal(verdictText({ scope: 'group', verdict: 'fault', links: 64, max_over_mean: 63.9952 }), 'fault: not explained by chance', 'one of 13,000 flows went elsewhere');
    for (const verdict of [undefined, 'unknown']) assert.equal(verdictText({ scope: 'group', verdict, links: 4 } as Imbalance), 'not judged', 'that is not idle');
    assert.equal(verdictText({ scope: 'group', verdict: 'idle' }), 'idle');
    assert.equal(verdictText({ scope: 'group', verdict: 'lopsided' }), 'lopsided', 'of a daemon of a later version');
    assert.equal(slowdown({ kind: 'collision', subject: '', evidence: { elephants: 4, elephants_even: 2 } }), 2);
    // An even share below one flow cannot be had.
    assert.equal(slowdown({ kind: 'collision', subject: '', evidence: { elephants: 3, elephants_even: 0.5 } }), 3);
});

test('where a rank stands, as the tool says it', () => {
    const rank = { comm_id: 'c', rank: 1, standing: true, number: 4711, standing_op: 'AllReduce', state: 'in_flight' };
    assert.deepEqual(standsIn({ ...rank, transfer: 'send_peer_wait', transfer_peer: 2, transfer_send: true }), { operation: 'AllReduce 4711', state: 'send peer wait to 2' });
    assert.deepEqual(standsIn({ ...rank, state: 'begun', process: 'stopped' }), { operation: 'AllReduce 4711', state: 'stopped' });
    for (const more of [{ state: 'finished' }, { standing: false }, { process: 'running', standing: false }]) assert.deepEqual(standsIn({ ...rank, ...more }), { operation: '', state: '' });
    assert.deepEqual(standsIn({ comm_id: 'c', rank: 1, process: 'gone' }), { operation: '', state: 'gone' });
});

test('a window says what it lacks', () => {
    assert.equal(lacks({ scope: 'fabric', missing_partitions: [], unaccounted_partitions: [] }), '');
    assert.equal(lacks({ scope: 'fabric', seen_share: 0.887 }), '88.7 % of the observations were taken in');
    assert.equal(lacks({ scope: 'fabric', seen_share: 0.9972 }), '99.7 % of the observations were taken in');
    assert.equal(lacks({ missing_partitions: [3], unaccounted_partitions: [4, 5] }),
        '1 partition of flows missing; daemons of an earlier version do not say what they took in');
});

test('what the page remembers is bounded', () => {
    const m = new Memory(3, 1);
    const window = (i: number) => ({ window_start_ms: i * 10 - 10, window_end_ms: i * 10 });
    for (let i = 1; i <= 5; i++) m.add(window(i), [{ scope: 'fabric', name: 'lab', fim: i }, { scope: 'group', name: 'g', fim: 1 }]);
    m.add(window(5), [{ scope: 'fabric', name: 'lab', fim: 99 }]);
    assert.deepEqual(m.spans(), [3, 4, 5].map((i) => ({ start: i * 10 - 10, end: i * 10 })));
    assert.deepEqual(m.of('fabric/lab').map((r) => r.fim), [3, 4, 5]);
    assert.equal(m.of('group/g').length, 3);
    m.add(window(6), [{ scope: 'group', name: 'g' }, { scope: 'group', name: 'h' }]);
    assert.equal(m.of('group/g').length, 2, 'too many groups are not kept');
});
