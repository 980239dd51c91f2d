// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileName, toCsv, toJson } from '../src/save.ts';

test('fields are quoted where they must be, and none is a formula', () => {
    assert.equal(toCsv(['A', 'B, s'], [['a "b"', 1.5], ['=1+1', undefined], ['-x', -2], ['@a,b', 0], ['two\nlines', 1e21]]),
        'A,"B, s"\r\n"a ""b""",1.5\r\n\'=1+1,\r\n\'-x,-2\r\n"\'@a,b",0\r\n"two\nlines",1e+21\r\n');
});

test('JSON has what is not known as absent', () => {
    assert.deepEqual(JSON.parse(toJson({ total: 2 }, ['a', 'b'], [['x', 1], ['y', undefined]])), { total: 2, records: [{ a: 'x', b: 1 }, { a: 'y' }] });
});

test('a name of a file has no character that leads elsewhere', () => {
    const ms = new Date(2026, 10, 28, 3, 12, 20).getTime();
    assert.equal(fileName(['lab', 'leaf1', 'Ethernet1/2', 'flows'], ms, 'csv'), 'lab-leaf1-Ethernet1-2-flows-20261128T031220.csv');
    assert.equal(fileName(['../..', '', 'x\u202e'], undefined, 'json'), 'x.json');
});
