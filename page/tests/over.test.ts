// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { merged, Over, OVER_MS } from '../src/over.ts';
import type { Event } from '../src/records.ts';

const kept = globalThis.fetch;
after(() => Object.assign(globalThis, { fetch: kept }));

const event = (subject: string, since_ms: number | undefined, time_ms: number, cleared = false): Event =>
    ({ kind: 'loss', subject, time_ms, ...(since_ms === undefined ? {} : { since_ms }), ...(cleared ? { cleared } : {}) });
const said = (events: Event[]) => events.map((e) => `${e.subject}${e.cleared ? ' over' : ''} ${e.time_ms}`).sort();

test('what stood and is over is there once, and again when it comes back', () => {
    const before = [event('a', 10, 50), event('b', 10, 20, true), event('c', undefined, 30)];
    assert.deepEqual(said(merged(before, [event('a', 10, 60, true), event('a', 70, 70)], 0)), ['a 70', 'a over 60', 'b over 20', 'c 30']);
    assert.deepEqual(said(merged(before, [event('c', undefined, 30)], 0)), ['a 50', 'b over 20', 'c 30'], 'a happening that is said twice');
});

test('what was over more than an hour ago goes', () => {
    assert.deepEqual(said(merged([event('a', 1, 20, true), event('b', 1, 21, true)], [event('x', 5, 5)], 21)), ['b over 21', 'x 5']);
});

test('the hour is asked for once, then from the last window on; of another daemon anew', async () => {
    const asked: string[] = [];
    Object.assign(globalThis, { location: { href: 'http://localhost/' }, fetch: (url: string) => {
        asked.push(url);
        return Promise.resolve(new Response(JSON.stringify({ records: [event(`${asked.length}`, 1, OVER_MS + asked.length, true)] })));
    } });
    const over = new Over();
    const to = 2 * OVER_MS;
    const [one, other] = await Promise.all([over.ask(to, 1), over.ask(to, 1)]);
    assert.equal(one, other);
    assert.match(asked[0] ?? '', new RegExp(`from_ms=${OVER_MS}$`));
    await over.ask(to, 1);
    assert.equal(asked.length, 1, 'no window has closed');
    assert.equal((await over.ask(to + 1, 1)).length, 2);
    assert.match(asked[1] ?? '', new RegExp(`from_ms=${to}$`));
    assert.equal(over.of(2), undefined);
    assert.equal((await over.ask(to + 1, 2)).length, 1);
    assert.match(asked[2] ?? '', new RegExp(`from_ms=${OVER_MS + 1}$`));
    assert.equal((await over.ask(to + 2 * OVER_MS, 2)).length, 1, 'the page slept for two hours');
    assert.match(asked[3] ?? '', new RegExp(`from_ms=${to + OVER_MS}$`));
});

test('a refusal leaves what is known, and is asked again', async () => {
    const over = new Over();
    let down = false;
    Object.assign(globalThis, { fetch: () => Promise.resolve(down ? new Response('no', { status: 503 }) : new Response(JSON.stringify({ records: [event('a', 1, 9)] }))) });
    await over.ask(10, 1);
    down = true;
    await assert.rejects(over.ask(20, 1));
    assert.deepEqual(said(over.of(1) ?? []), ['a 9']);
    down = false;
    assert.equal((await over.ask(20, 1)).length, 1);
});
