// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { band, fim } from '../src/chance.ts';

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
