// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { Messages, Stream } from '../src/stream.ts';
import { forgetToken, holdToken } from '../src/token.ts';

const real = globalThis.fetch;

afterEach(() => {
    globalThis.fetch = real;
    forgetToken();
});

const TEXT = ': here\n\nevent: window\ndata: {"a":1}\n\n:\n\nevent: event\r\ndata: {"b":\r\ndata: 2}\r\n\r\nevent: lost\n\ndata: x\n\nevent: window\rdata: y\r\r';
const KINDS = ['window', 'event', 'message', 'window'];

test('messages are found wherever the text is divided', () => {
    for (let i = 0; i <= TEXT.length; i++) {
        const m = new Messages();
        assert.deepEqual([...m.feed(TEXT.slice(0, i)), ...m.feed(TEXT.slice(i)), ...m.feed(': end')], KINDS, `at ${i}`);
    }
    const m = new Messages();
    assert.deepEqual([...`${TEXT}:`].flatMap((c) => m.feed(c)), KINDS);
});

async function until(is: () => boolean): Promise<void> {
    while (!is()) await new Promise((done) => setImmediate(done));
}

function heard(): { events: string[]; stream: Stream } {
    const events: string[] = [];
    return { events, stream: new Stream({ opened: () => events.push('opened'), said: (k) => events.push(k), ended: () => events.push('ended') }) };
}

test('a stream shows the token in a header, says what comes, and ends', async () => {
    let asked: [string, RequestInit] | undefined;
    globalThis.fetch = (url, options) => {
        asked = [String(url), options ?? {}];
        return Promise.resolve(new Response(TEXT, { headers: { 'Content-Type': 'text/event-stream' } }));
    };
    holdToken('secret');
    const { events, stream } = heard();
    await until(() => events.includes('ended'));
    assert.deepEqual(events, ['opened', ...KINDS.slice(0, 3), 'ended'], 'the last message is not complete');
    assert.equal(asked?.[0], 'api/v1/stream');
    assert.equal((asked?.[1].headers as Record<string, string>)['Authorization'], 'Bearer secret');
    assert.equal(stream.state, 'trying');
    stream.close();
});

test('one that is refused, or is none, is closed', async () => {
    for (const answer of [new Response('no', { status: 503 }), new Response('<html>', { headers: { 'Content-Type': 'text/html' } })]) {
        globalThis.fetch = () => Promise.resolve(answer);
        const { events, stream } = heard();
        await until(() => events.length > 0);
        assert.deepEqual(events, ['ended']);
        assert.equal(stream.state, 'closed');
    }
});
