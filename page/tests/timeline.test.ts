// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { between } from '../src/text.ts';
import { alone, lay, momentText, ticksText } from '../src/timeline.ts';

const record = (n: number, fim?: number) => ({ window_start_ms: n * 10_000, window_end_ms: (n + 1) * 10_000, fim });
const here = (d: number, h = 0, m = 0, s = 0) => new Date(2026, 10, d, h, m, s).getTime();

test('where windows are missing nothing is joined', () => {
    const laid = lay([record(1, 5), record(2, 6), record(7, 7), record(8, 8)], [(r) => r.fim]);
    assert.deepEqual(laid.values, [[5, 6, null, 7, 8]]);
    assert.deepEqual(laid.times, [10_000, 20_000, 30_000, 70_000, 80_000]);
});

test('a window without a figure is a gap as well, and one beside another is none', () => {
    assert.deepEqual(lay([record(1, 5), record(2), record(3, 7)], [(r) => r.fim]).values, [[5, null, 7]]);
    const other = { window_start_ms: 21_000, window_end_ms: 26_000, fim: 6 }; // of another length, after a reload
    assert.deepEqual(lay([record(1, 5), other], [(r) => r.fim]).values, [[5, 6]]);
});

test('time rises, whatever order the answer is in, and no window is there twice', () => {
    const laid = lay([record(3, 7), record(1, 5), record(2, 6), record(2, 6)], [(r) => r.fim, () => undefined]);
    assert.deepEqual(laid, { times: [10_000, 20_000, 30_000], values: [[5, 6, 7], [null, null, null]] });
    assert.deepEqual(lay([], [() => 1]), { times: [], values: [[]] });
});

test('a window between gaps is a point', () => {
    assert.deepEqual(alone([5, 6, null, 7, null, 8, 9]), [3]);
    assert.deepEqual(alone([5]), [0]);
    assert.deepEqual(alone([null, 5, undefined, 6]), [1, 3]);
    assert.deepEqual(alone([5, 6]), []);
});

test('an axis names days where not all is of today', () => {
    const s = (...of: number[]) => of.map((ms) => ms / 1000);
    const now = here(28, 12);
    assert.deepEqual(ticksText(s(here(28, 9), here(28, 9, 30)), 1800, now), ['09:00', '09:30']);
    assert.deepEqual(ticksText(s(here(28, 9), here(28, 9, 0, 10)), 10, now), ['09:00:00', '09:00:10']);
    assert.deepEqual(ticksText(s(here(27, 18), here(27, 21), here(28), here(28, 3)), 10800, now), ['18:00\n2026-11-27', '21:00', '00:00\n2026-11-28', '03:00']);
    assert.deepEqual(ticksText(s(here(27, 9), here(27, 10)), 3600, now), ['09:00\n2026-11-27', '10:00']);
    assert.deepEqual(ticksText(s(here(26), here(27)), 86_400, now), ['2026-11-26', '2026-11-27']);
    assert.deepEqual(ticksText([], 60, now), []);
});

test('so does what is under the pointer, and a span', () => {
    assert.equal(momentText(here(28, 3) / 1000, here(28, 12)), '03:00:00');
    assert.equal(momentText(here(27, 3) / 1000, here(28, 12)), '2026-11-27 03:00:00');
    assert.equal(momentText(null), '–');
    assert.equal(between(here(28, 3), here(28, 3, 0, 10), here(28, 12)), '03:00:00 to 03:00:10');
    assert.equal(between(here(27, 3), here(27, 3, 0, 10), here(28, 12)), '2026-11-27 03:00:00 to 03:00:10');
    assert.equal(between(here(27, 23, 59, 50), here(28), here(28, 12)), '2026-11-27 23:59:50 to 00:00:00');
});
