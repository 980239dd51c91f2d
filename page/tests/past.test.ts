// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { joined, Past } from '../src/past.ts';

const kept = globalThis.fetch;
after(() => Object.assign(globalThis, { fetch: kept }));

const span = (n: number) => ({ window_start_ms: n * 10, window_end_ms: n * 10 + 10 });
const spans = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => span(from + i));
const ends = (records: { window_end_ms?: number | undefined }[]) => records.map((r) => r.window_end_ms);

/** A daemon that keeps windows first to last. */
function daemon(keeps: { first: number; last: number }): string[] {
    const asked: string[] = [];
    Object.assign(globalThis, { location: { href: 'http://localhost/' }, fetch: (url: string) => {
        asked.push(url);
        const from = Number(new URL(url, 'http://localhost/').searchParams.get('from_ms') ?? 0);
        return Promise.resolve(new Response(JSON.stringify({ records: spans(keeps.first, keeps.last).filter((w) => w.window_end_ms > from) })));
    } });
    return asked;
}

test('what is new takes the place of what was, and what is no longer kept goes', () => {
    const news = [{ ...span(3), fim: 1 }, span(4)];
    const all = joined<{ window_end_ms: number; fim?: number }>(spans(0, 3), news, 20);
    assert.deepEqual(ends(all), [30, 40, 50]);
    assert.equal(all[1]?.fim, 1);
});

test('a key is asked for once, then from the last window on', async () => {
    const keeps = { first: 0, last: 5 };
    const asked = daemon(keeps);
    const past = new Past();
    const ask = (epoch = 1) => past.ask('link', 'a/b', { windows: spans(keeps.first, keeps.last), epoch });
    const [one, other] = await Promise.all([ask(), ask()]);
    assert.equal(one, other);
    assert.equal(asked.length, 1);
    Object.assign(keeps, { first: 2, last: 7 });
    assert.deepEqual(ends(await ask()), [30, 40, 50, 60, 70, 80]);
    assert.match(asked[1] ?? '', /from_ms=60$/);
    await ask();
    assert.equal(asked.length, 2, 'no window has closed');
    assert.deepEqual(ends(past.of('link', 'a/b', 1) ?? []), [30, 40, 50, 60, 70, 80]);
});

test('another daemon is asked for all that it has', async () => {
    const keeps = { first: 0, last: 5 };
    const asked = daemon(keeps);
    const past = new Past();
    await past.ask('link', 'a/b', { windows: spans(0, 5), epoch: 1 });
    Object.assign(keeps, { first: 9, last: 9 });
    assert.equal(past.of('link', 'a/b', 2), undefined);
    assert.deepEqual(ends(await past.ask('link', 'a/b', { windows: spans(9, 9), epoch: 2 })), [100]);
    assert.ok(!/from_ms/.test(asked[1] ?? ''));
});

test('a refusal takes nothing away', async () => {
    daemon({ first: 0, last: 1 });
    const past = new Past();
    await past.ask('link', 'a/b', { windows: spans(0, 1), epoch: 1 });
    Object.assign(globalThis, { fetch: () => Promise.resolve(new Response('too much', { status: 503 })) });
    await assert.rejects(past.ask('link', 'a/b', { windows: spans(0, 2), epoch: 1 }), /too much/);
    assert.equal(past.of('link', 'a/b', 1)?.length, 2);
});

test('few keys are remembered', async () => {
    const asked = daemon({ first: 0, last: 1 });
    const past = new Past();
    for (let i = 0; i < 20; i++) await past.ask('link', `a/${i}`, { windows: spans(0, 1), epoch: 1 });
    assert.equal(past.of('link', 'a/0', 1), undefined);
    assert.ok(past.of('link', 'a/19', 1));
    assert.equal(asked.length, 20);
});
