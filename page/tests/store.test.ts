// SPDX-License-Identifier: Apache-2.0
// The store against a daemon that answers, stands still, is away and comes back, without a clock.
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { hasLinks, waits, type Store as StoreType } from '../src/store.ts';
import type { Ears, StreamState } from '../src/stream.ts';
import { forgetToken } from '../src/token.ts';

type Body = Record<string, unknown>;

class FakeStream {
    static all: FakeStream[] = [];
    state: StreamState = 'open';

    constructor(private readonly ears: Ears) {
        FakeStream.all.push(this);
    }

    close(): void {
        this.state = 'closed';
    }

    says(kind: string): void {
        this.ears.said(kind);
    }

    ends(): void {
        this.state = 'trying';
        this.ears.ended();
    }

    opens(): void {
        this.state = 'open';
        this.ears.opened();
    }
}

/** What is asked, and what the daemon does: an answer, a status, or nothing at all. */
let asked: string[] = [];
let daemon: (what: string, query: string) => Body | number | 'nothing' = () => 404;
/** The token that it wants. */
let wanted = '';
let ticks: (() => void)[] = [];
let limits: { run: () => void; ms: number }[] = [];
const kept = { fetch: globalThis.fetch, setInterval: globalThis.setInterval, setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };

function fakeFetch(url: string, options: { signal?: AbortSignal; headers?: Record<string, string> } = {}): Promise<Response> {
    const [what = '', query = ''] = url.replace('api/v1/', '').split('?');
    asked.push(what);
    const said = wanted !== '' && options.headers?.['Authorization'] !== `Bearer ${wanted}` ? 401 : daemon(what, query);
    if (said === 'nothing')
        return new Promise((_, fail) => {
            options.signal?.addEventListener('abort', () => fail(new DOMException('aborted', 'AbortError')));
        });
    return Promise.resolve(typeof said === 'number' ? new Response('no', { status: said, headers: said === 401 ? { 'WWW-Authenticate': 'Bearer' } : {} }) : new Response(JSON.stringify(said)));
}

/** Until all that can go on has gone on. */
async function settle(): Promise<void> {
    for (let i = 0; i < 50; i++) await new Promise((done) => setImmediate(done));
}

async function tick(times = 1): Promise<void> {
    for (let i = 0; i < times; i++) {
        for (const run of ticks) run();
        await settle();
    }
}

/** The limits of all questions that hang. */
async function expire(upToMs: number): Promise<void> {
    for (const { run } of limits.filter((l) => l.ms <= upToMs)) run();
    await settle();
}

const page = { hidden: false, hash: '#/fabric', seen: () => undefined as void, moved: () => undefined as void };

async function open(hash = '#/fabric'): Promise<StoreType> {
    page.hash = hash;
    const { Store } = await import('../src/store.ts');
    const store = new Store((ears) => new FakeStream(ears));
    store.start();
    await settle();
    return store;
}

const span = (n: number) => ({ window_start_ms: n * 10_000, window_end_ms: (n + 1) * 10_000 });

/** A daemon of two switches in window n; undefined: none has closed yet. */
function running(n: number | undefined, more: Record<string, Body | number | 'nothing'> = {}) {
    const head = n === undefined ? {} : span(n);
    const all: Record<string, Body> = {
        topology: { fabric: 'lab', switches: [
            { name: 'leaf1', tier: 'leaf', ports: [{ name: 'u1', peer: 'spine1', peer_port: 'd1' }] },
            { name: 'spine1', tier: 'spine', ports: [{ name: 'd1', peer: 'leaf1', peer_port: 'u1' }] },
        ] },
        windows: { records: n === undefined ? [] : [span(n - 1), span(n)] },
        links: { ...head, records: n === undefined ? [] : [{ switch: 'leaf1', port: 'u1', flows: 3, bytes: 9, ...head }] },
    };
    return (what: string): Body | number | 'nothing' => more[what] ?? all[what] ?? { ...head, records: [] };
}

beforeEach(() => {
    asked = [];
    wanted = '';
    forgetToken();
    ticks = [];
    limits = [];
    FakeStream.all = [];
    Object.assign(page, { hidden: false });
    Object.assign(globalThis, {
        fetch: fakeFetch,
        location: { href: 'http://localhost/fabrictrace/', get hash() { return page.hash; } },
        document: { get hidden() { return page.hidden; }, addEventListener: (_: string, f: () => void) => { page.seen = f; } },
        addEventListener: (_: string, f: () => void) => { page.moved = f; },
        setInterval: (f: () => void) => { ticks.push(f); },
        setTimeout: (run: () => void, ms: number) => limits.push({ run, ms }) - 1,
        clearTimeout: (i: number | undefined) => { if (i !== undefined && limits[i]) limits[i] = { run: () => undefined, ms: Infinity }; },
    });
});

after(() => Object.assign(globalThis, kept));

test('a stream that is open and silent is no daemon that lives', async () => {
    daemon = running(7);
    const store = await open();
    assert.equal(store.state.connection, 'live');
    daemon = () => 'nothing';
    await tick(20);
    await expire(10_000);
    assert.equal(store.state.connection, 'lost');
    assert.equal(store.state.window?.window_end_ms, 80_000, 'what was last known stays');
    await tick(100);
    assert.ok(asked.filter((a) => a === 'events').length < 4, 'questions that hang do not heap up');
});

test('what hangs holds up nothing when the daemon is back', async () => {
    daemon = running(7);
    const store = await open();
    daemon = () => 'nothing';
    FakeStream.all[0]?.says('window');
    await settle();
    await tick(20);
    await expire(10_000);
    assert.equal(store.state.connection, 'lost');
    daemon = running(9);
    await expire(10_000);
    await tick(1);
    assert.equal(store.state.connection, 'live');
    assert.equal(store.state.window?.window_end_ms, 100_000);
});

test('a stream that is silent while windows close is opened anew', async () => {
    daemon = running(7);
    const store = await open();
    daemon = running(10);
    await tick(20);
    assert.equal(store.state.window?.window_end_ms, 110_000);
    assert.equal(FakeStream.all.length, 2);
    assert.equal(FakeStream.all[0]?.state, 'closed');
});

test('after a restart the window of before is not shown as the one of now', async () => {
    daemon = running(7);
    const store = await open();
    const stream = FakeStream.all[0];
    assert.ok(stream);
    stream.ends();
    daemon = running(undefined);
    asked = [];
    stream.opens();
    await settle();
    assert.equal(store.state.connection, 'live');
    assert.equal(store.state.window, undefined);
    assert.ok(asked.includes('topology'), 'its topology may be another one');
});

test('a daemon that could not answer at first is asked again for its windows, and listened to', async () => {
    daemon = running(7, { windows: 503 });
    const store = await open();
    assert.equal(store.state.keeps, undefined);
    daemon = running(8);
    await tick(1);
    assert.equal(store.state.keeps, true);
    assert.equal(FakeStream.all.length, 1);
});

test('what failed is asked again before the next window', async () => {
    daemon = running(7, { doctor: 503 });
    const store = await open();
    assert.equal(store.state.connection, 'lost');
    daemon = running(7);
    await tick(1);
    assert.equal(store.state.connection, 'live');
    assert.equal(store.state.window?.window_end_ms, 80_000);
});

test('nothing is asked for a page that nobody sees; when it is seen, its windows are asked, too', async () => {
    daemon = running(7);
    const store = await open();
    page.hidden = true;
    asked = [];
    daemon = running(300);
    FakeStream.all[0]?.says('event');
    FakeStream.all[0]?.says('window');
    await expire(500);
    await tick(5);
    assert.deepEqual(asked, []);
    page.hidden = false;
    page.seen();
    await settle();
    assert.equal(store.state.window?.window_end_ms, 3_010_000);
    assert.equal(store.state.windows?.[1]?.window_end_ms, 3_010_000);
});

test('of the windows only what is new is asked for; all of them of a daemon that was away', async () => {
    const queries: string[] = [];
    let last = 7;
    const windows = (query: string) => {
        queries.push(query);
        const from = Number(/from_ms=(\d+)/.exec(query)?.[1] ?? 0);
        const all = Array.from({ length: 5 }, (_, i) => span(last - 4 + i)).filter((w) => w.window_end_ms > from);
        return { records: /limit=1/.test(query) ? all.slice(0, 1) : all };
    };
    daemon = (what, query) => running(last, what === 'windows' ? { windows: windows(query) } : {})(what);
    const store = await open();
    last = 9;
    FakeStream.all[0]?.says('window');
    await settle();
    assert.deepEqual(queries, ['', 'limit=1', 'from_ms=80000']);
    assert.deepEqual(store.state.windows?.map((w) => w.window_start_ms / 10_000), [5, 6, 7, 8, 9]);
    assert.equal(store.state.epoch, 1);
    FakeStream.all[0]?.ends();
    last = 4;
    FakeStream.all[0]?.opens();
    await settle();
    assert.deepEqual(store.state.windows?.map((w) => w.window_start_ms / 10_000), [0, 1, 2, 3, 4]);
    assert.equal(store.state.epoch, 2);
});

test('what the doctor finds down now was not down then', async () => {
    const found = [{ switch: 'leaf1', port: 'u1', text: 'the link to spine1 d1 is down: a port of it is down' }];
    daemon = (what, query) => (query.startsWith('at_ms') ? running(7) : running(9, { doctor: { ...span(9), records: found } }))(what);
    const then = await open('#/fabric?at=75000');
    assert.equal(then.state.window?.window_end_ms, 80_000);
    assert.equal(then.state.fabric?.ways.get('leaf1/u1')?.state, 'used');
    const now = await open();
    assert.equal(now.state.fabric?.ways.get('leaf1/u1')?.state, 'down');
});

test('links are of the window that is shown, or are waited for', async () => {
    daemon = running(7);
    const store = await open('#/events');
    assert.equal(asked.filter((a) => a === 'links').length, 0);
    assert.ok(!hasLinks(store.state) && !waits(store.state), 'no view of links, no word of them');
    daemon = running(8, { links: 'nothing' });
    page.hash = '#/links';
    page.moved();
    await settle();
    assert.ok(waits(store.state));
    daemon = running(8);
    await tick(20);
    await expire(60_000);
    await tick(1);
    assert.ok(hasLinks(store.state) && !waits(store.state));
    assert.equal(store.state.links?.length, 1);
});

test('the links of a window are asked for once', async () => {
    daemon = running(7);
    const store = await open();
    for (let i = 0; i < 5; i++) {
        FakeStream.all[0]?.says('event');
        await expire(500);
    }
    assert.equal(asked.filter((a) => a === 'events').length, 6);
    assert.equal(asked.filter((a) => a === 'links').length, 1);
    daemon = running(8);
    FakeStream.all[0]?.says('window');
    await settle();
    assert.equal(asked.filter((a) => a === 'links').length, 2);
    assert.ok(hasLinks(store.state));
});

test('nothing is left behind with each window', async () => {
    daemon = running(7);
    await open();
    for (let n = 8; n < 20; n++) {
        daemon = running(n);
        FakeStream.all[0]?.says('window');
        await settle();
    }
    assert.equal(performance.getEntriesByType('measure').length, 0);
});

test('a daemon that wants a token is not asked until there is one', async () => {
    daemon = running(7);
    wanted = 'right';
    const store = await open();
    assert.equal(store.state.locked, 'needed');
    assert.equal(FakeStream.all.length, 0);
    asked = [];
    await tick(30);
    page.seen();
    page.moved();
    await settle();
    assert.deepEqual(asked, []);
    store.unlock('wrong');
    await settle();
    assert.equal(store.state.locked, 'refused');
    assert.equal(store.state.fabric, undefined);
    store.unlock('right');
    await settle();
    assert.equal(store.state.locked, '');
    assert.equal(store.state.connection, 'live');
    assert.equal(store.state.window?.window_end_ms, 80_000);
    assert.equal(FakeStream.all.length, 1);
});

test('where the token is another one from now on, nothing is shown, and asked once', async () => {
    daemon = running(7);
    wanted = 'one';
    const store = await open();
    store.unlock('one');
    await settle();
    assert.equal(store.state.connection, 'live');
    wanted = 'two';
    FakeStream.all[0]?.says('window');
    await settle();
    assert.equal(store.state.locked, 'refused');
    assert.equal(store.state.fabric, undefined);
    assert.equal(FakeStream.all[0]?.state, 'closed');
    store.unlock('two');
    await settle();
    assert.equal(store.state.connection, 'live');
    assert.equal(FakeStream.all.length, 2);
});
