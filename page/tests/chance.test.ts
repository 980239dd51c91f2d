// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { band, bandOf, expected, fim } from '../src/chance.ts';

// Known answers of fabrictrace-records(7).
test('FIM', () => {
    assert.equal(fim([4, 4, 4, 4]), 0);
    assert.equal(fim([16, 0, 0, 0]), 150);
    assert.equal(fim([7, 5, 3, 1]), 50);
    assert.equal(fim([3, 2, 2, 1, 0, 4, 2, 2]), 37.5);
    assert.ok(Number.isNaN(fim([0, 0])));
});

for (const [flows, links, expected] of [
    [8, 8, 68.722], [16, 8, 50.6], [64, 8, 26.109], [64, 16, 37.829], [256, 16, 19.213], [16, 4, 33.78], [8, 2, 27.344],
] as const)
    test(`the middle of ${flows} flows on ${links} links is what is expected`, () => {
        const b = band(flows, links);
        assert.ok(b);
        assert.ok(Math.abs(b.middle - expected) < 0.08 * expected, `${b.middle}`);
        assert.ok(b.low < expected && expected < b.high, JSON.stringify(b));
    });

for (const [flows, links, known] of [
    [8, 8, 68.722], [16, 16, 71.215], [32, 8, 36.536], [64, 16, 37.829], [128, 8, 18.56], [256, 16, 19.213], [8, 2, 27.344],
] as const)
    test(`what is expected of ${flows} flows on ${links} links`, () => {
        assert.ok(Math.abs(expected(flows, links) - known) < 0.001, String(expected(flows, links)));
    });

test('a layer: narrower than its groups, around what the record expects', () => {
    const group = band(16, 4);
    const layer = bandOf({ scope: 'layer', links: 64, groups: 16, flows: 256, fim_expected: expected(16, 4) });
    assert.ok(group && layer);
    assert.ok(layer.low < 33.78 && layer.high > 33.78);
    assert.ok((layer.high - layer.low) * 3 < group.high - group.low, JSON.stringify([group, layer]));
    // Not all groups had flows: fewer dice, a wider band.
    const part = bandOf({ scope: 'layer', links: 64, groups: 16, idle_groups: 12, flows: 64, fim_expected: expected(16, 4) });
    assert.ok(part && part.high - part.low > layer.high - layer.low);
    assert.deepEqual(bandOf({ scope: 'group', links: 4, flows: 16 }), group);
    assert.equal(bandOf({ scope: 'fabric', links: 8, groups: 2, flows: 0 }), undefined);
});

test('a group whose flows choose otherwise than alike among all links: no band', () => {
    // One link of four that hardly any of them may take; links of which two are four times as fast.
    for (const fim_expected of [46.9, 60])
        assert.equal(bandOf({ scope: 'group', links: 4, flows: 540, fim_expected }), undefined);
    assert.deepEqual(bandOf({ scope: 'group', links: 4, flows: 540, fim_expected: expected(540, 4) }), band(540, 4));
    // A few of them are not on one link for certain.
    assert.ok(bandOf({ scope: 'group', links: 4, flows: 540, fim_expected: expected(480, 4) }));
});

test('many flows: normal loads, a narrow band', () => {
    const b = band(100_000, 32);
    assert.ok(b);
    // 100 * sqrt(2/pi) / sqrt(mean), about
    assert.ok(Math.abs(b.middle - 1.41) < 0.15, `${b.middle}`);
});

test('it stands still, and is nothing without a choice', () => {
    assert.deepEqual(band(64, 8), band(64, 8));
    assert.equal(band(0, 8), undefined);
    assert.equal(band(8, 1), undefined);
    assert.equal(band(undefined, 8), undefined);
});
