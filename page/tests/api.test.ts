// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { changed } from '../src/api.ts';

const real = globalThis.fetch;

afterEach(() => {
    globalThis.fetch = real;
});

/** The daemon answers so, one after the other. */
function answers(...of: (Response | Error)[]): void {
    globalThis.fetch = () => {
        const next = of.shift();
        return next instanceof Response ? Promise.resolve(next) : Promise.reject(next ?? new Error('asked too often'));
    };
}

const tagged = (tag: string, body: string) => new Response(body, { headers: { ETag: tag } });

test('an answer whose tag still holds is the one that is there', async () => {
    answers(tagged('"1"', '{"fabric":"a"}'), tagged('"1"', '{"fabric":"a"}'), tagged('"2"', '{"fabric":"b"}'));
    const first = await changed<{ fabric: string }>('topology', undefined);
    assert.equal(await changed('topology', first), first);
    assert.equal((await changed('topology', first)).fabric, 'b');
});

test('a new answer that broke off, or was not taken over, is read again', async () => {
    answers(tagged('"1"', '{"fabric":"a"}'), tagged('"2"', '{"fabric":'), tagged('"2"', '{"fabric":"b"}'), tagged('"2"', '{"fabric":"b"}'));
    const first = await changed<{ fabric: string }>('topology', undefined);
    await assert.rejects(changed('topology', first));
    assert.equal((await changed('topology', first)).fabric, 'b');
    assert.equal((await changed('topology', first)).fabric, 'b', 'what was asked beside it failed: the first is still what is shown');
});
