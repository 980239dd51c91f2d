// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';
import type { WhatIf } from '../src/records.ts';
import { errorsOf, figuresOf, flowsText, movesOf, pathText, rangeText, topOf } from '../src/whatif.ts';

const error = { rates: { count: 4, median: 0.01, p90: 0.02, worst: 0.25 }, limited: { count: 0 }, loads: { count: 2, median: 0, p90: 0, worst: 0 } };
const draws = (min: number, mean: number, max: number) => ({ min, mean, max });
const policy = (name: string, load: [number, number, number], share: [number, number, number], n = 1): WhatIf => ({
    schema: 'fabrictrace.whatif.v1', flows: 4, unresolved: 2, small: 0, beyond: 7, error,
    figures: {
        policy: name, draws: n, load_most: draws(...load), slowest_share: draws(...share),
        layers: [{ name: 'leaf/up', links: 4, fim: draws(0, 50 * load[1], 100) }],
    },
});
const answer: WhatIf[] = [
    { schema: 'fabrictrace.whatif.v1', flows: 4, error, figures: { policy: 'measured', hottest_load: 1.1, layers: [{ name: 'leaf/up', fim: draws(90, 90, 90) }] } },
    policy('observed', [1, 1, 1], [0.5, 0.5, 0.5]), policy('ecmp', [0.5, 0.8, 1.5], [0.25, 0.6, 1], 20),
];

test('figures have the range of each policy, and what was measured beside them', () => {
    const [load, fim, slowest, ...rest] = figuresOf(answer);
    assert.equal(rest.length, 0);
    assert.equal(load?.measured, 1.1 * 100);
    assert.equal(load?.top, 200);
    assert.deepEqual(load?.ranges.map((r) => [r.policy, r.min, r.mean, r.max]), [['observed', 100, 100, 100], ['ecmp', 50, 80, 150]]);
    assert.equal(fim?.title, 'FIM of leaf/up');
    assert.equal(fim?.measured, 90);
    assert.equal(fim?.top, 100);
    // Nobody measures what a flow wants.
    assert.equal(slowest?.measured, undefined);
    assert.deepEqual(slowest?.ranges[1], { policy: 'ecmp', draws: 20, min: 25, mean: 60, max: 100 });
});

test('what an answer lacks is left out', () => {
    assert.deepEqual(figuresOf([]), []);
    assert.deepEqual(figuresOf([{ schema: 'x', figures: { policy: 'plan' } }]), []);
    assert.deepEqual(figuresOf([{ schema: 'x' }]), []);
});

test('an axis ends at 1, 2 or 5 times a power of ten', () => {
    for (const [value, top] of [[0, 1], [-3, 1], [NaN, 1], [0.7, 1], [1, 1], [1.01, 2], [30, 50], [100, 100], [110, 200], [640, 1000]] as const)
        assert.equal(topOf(value), top, String(value));
});

test('a range is told in words', () => {
    assert.equal(rangeText({ policy: 'plan', draws: 1, min: 75, mean: 75, max: 75 }), '75.0 %');
    assert.equal(rangeText({ policy: 'ecmp', draws: 20, min: 75, mean: 75, max: 75 }), '75.0 % in all 20 draws');
    assert.equal(rangeText({ policy: 'ecmp', draws: 20, min: 50, mean: 80.04, max: 150 }), '50.0 to 150 %, mean 80.0 % of 20 draws');
});

test('the error is always said, and which flows count', () => {
    assert.deepEqual(errorsOf(answer[0]), [
        'rates of flows: 4 compared, median 1.0 %, worst 25.0 %', 'of these behind a full link: none to compare',
        'loads of links: 2 compared, median 0.0 %, worst 0.0 %']);
    assert.equal(errorsOf(undefined).length, 3);
    assert.equal(flowsText(answer[1]), '4 flows; left out: 2 without a known path, 7 beyond what is computed with');
    assert.equal(flowsText(answer[0]), '4 flows');
});

test('which flows the plan moves, and of how many', () => {
    const path = (spine: number) => [{ switch: 'leaf1', in: 'h1', out: `up${spine}` }, { switch: `spine${spine}`, in: 'd1', out: 'd2' }, { switch: 'leaf2', in: `up${spine}`, out: 'h2' }];
    const moved = [{ flow: { src: '10.0.0.1', dst: '10.0.0.2', sport: 50000, dport: 4791, proto: 17 }, hops_before: path(1), hops: path(2) }];
    const plan = (moves: number): WhatIf => ({ schema: 'x', figures: { policy: 'plan', draws: 1, moves: draws(moves, moves, moves) }, moved });
    assert.deepEqual(movesOf([...answer, plan(1)]), { moved, of: 1 });
    assert.equal(movesOf([...answer, plan(70)])?.of, 70);
    assert.equal(movesOf(answer), undefined);
    assert.equal(movesOf([{ schema: 'x', figures: { policy: 'plan' }, moved: [] }]), undefined);
    assert.equal(pathText(moved[0]?.hops_before), 'leaf1 up1 > spine1 d2 > leaf2');
    assert.equal(pathText(moved[0]?.hops), 'leaf1 up2 > spine2 d2 > leaf2');
    assert.equal(pathText([{ switch: 'leaf1', in: 'h1', out: 'h2' }]), 'leaf1');
    assert.equal(pathText(undefined), '–');
});
