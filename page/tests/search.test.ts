// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entriesOf, find } from '../src/search.ts';

const entries = entriesOf({
    switches: [
        { name: 'leaf1', tier: 'leaf', addresses: ['192.0.2.11'], ports: [{ name: 'Ethernet51', peer: 'spine1', peer_port: 'Ethernet1' }] },
        { name: 'leaf10', tier: 'leaf', ports: [] },
    ],
    hosts: [{ name: 'gpu01', nics: [{ addresses: ['10.0.1.2', 'fd00:1::2'], attach: [{ switch: 'leaf1', port: 'Ethernet1' }] }] }],
}, [{ comm_id: 'c', rank: 0, job: '88' }, { comm_id: 'c', rank: 1, job: '88' }]);

const first = (query: string) => find(entries, query, 5)[0];

test('what is called so comes first', () => {
    assert.equal(first('leaf1')?.text, 'leaf1');
    assert.equal(first('LEAF10')?.text, 'leaf10');
    assert.deepEqual(first('10.0.1.2')?.names, ['gpu01']);
    assert.deepEqual(first('192.0.2.11')?.view, 'switch');
    assert.deepEqual(first('leaf1 Ethernet51')?.view, 'link');
    assert.deepEqual(first('leaf1/51')?.names, ['leaf1', 'Ethernet51']);
    assert.equal(first('88')?.view, 'job');
    assert.equal(find(entries, '88', 5).length, 1);
});

test('a flow is one, known or not', () => {
    assert.deepEqual(first('10.0.9.9:50003-10.0.4.6')?.names, ['10.0.9.9:50003-10.0.4.6']);
});

test('nothing is found for nothing', () => {
    assert.deepEqual(find(entries, '  ', 5), []);
    assert.deepEqual(find(entries, 'zzz', 5), []);
});
