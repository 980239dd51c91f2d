// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { authorization, forgetToken, heed, holdToken, isToken, token, whenRefused } from '../src/token.ts';

afterEach(forgetToken);

const refusal = (scheme: string) => new Response('no', { status: 401, headers: scheme ? { 'WWW-Authenticate': scheme } : {} });

test('a token goes into a header, and away', () => {
    assert.deepEqual(authorization(), {});
    holdToken('a b/c=');
    assert.deepEqual(authorization(), { Authorization: 'Bearer a b/c=' });
    forgetToken();
    assert.equal(token(), undefined);
});

test('what no header carries is none', () => {
    for (const text of ['x', 'abc/+=.-_~', 'a b']) assert.ok(isToken(text), text);
    for (const text of ['', ' x', 'x ', 'a\nb', 'a\x00', 'Zürich', '\u2028']) assert.ok(!isToken(text), text);
});

test('a refusal counts for the token that was shown', () => {
    let refused = 0;
    const away = whenRefused(() => refused++);
    heed(refusal('Bearer'), undefined);
    assert.equal(refused, 1);
    holdToken('new');
    heed(refusal('Bearer'), 'old');
    heed(refusal('Basic realm="proxy"'), 'new');
    heed(refusal(''), 'new');
    heed(new Response('{}'), 'new');
    assert.equal(refused, 1, 'late, of a proxy, or none');
    heed(refusal('bearer realm="x"'), 'new');
    assert.equal(refused, 2);
    away();
});
