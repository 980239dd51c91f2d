// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format, kept, moment, parse } from '../src/route.ts';

test('an address names view, thing and moment', () => {
    assert.deepEqual(parse('#/link/leaf1/Ethernet51?at=1795171290000'), { view: 'link', names: ['leaf1', 'Ethernet51'], params: { at: '1795171290000' } });
    assert.equal(format(parse('#/link/leaf1/Ethernet51?at=1795171290000')), '#/link/leaf1/Ethernet51?at=1795171290000');
    assert.equal(parse('').view, 'fabric');
    assert.deepEqual(parse('#/nothing/x').names, []);
    assert.equal(parse('#/%E0%A4%A').view, 'fabric');
});

for (const names of [['leaf/1', 'Port #51?&=%'], ['fd00::1', '[::]:1'], ['a b', '+'], ['\u0000\n', '<script>']])
    test(`any name comes back: ${JSON.stringify(names)}`, () => {
        assert.deepEqual(parse(format({ view: 'link', names, params: { q: names[0] ?? '' } })), { view: 'link', names, params: { q: names[0] } });
    });

test('the moment is kept from view to view, filters are not', () => {
    assert.deepEqual(kept({ at: '1', a: '2', b: '3', state: 'down', 'sort-links': 'x' }), { at: '1', a: '2', b: '3' });
    assert.equal(moment({ at: '17' }), 17);
    assert.equal(moment({ at: '-1' }), undefined);
    assert.equal(moment({ at: 'x' }), undefined);
    assert.equal(format({ view: 'fabric', names: [], params: { at: '' } }), '#/fabric');
});
