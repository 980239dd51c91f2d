// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toText } from '../src/copytext.ts';

test('facts and tables stand in columns', () => {
    assert.equal(toText([
        { kind: 'head', text: 'Link leaf1 Ethernet51' },
        { kind: 'facts', rows: [['State', 'used'], ['Leads to', 'spine1']] },
        { kind: 'table', head: ['Flow', 'Rate'], numeric: [false, true], rows: [['10.0.1.2:5-10.0.4.6', '24.1 Gb/s'], ['a', '1 b/s']], more: 3 },
        { kind: 'line', text: 'end' },
    ]), `Link leaf1 Ethernet51
  State     used
  Leads to  spine1
  FLOW                      RATE
  10.0.1.2:5-10.0.4.6  24.1 Gb/s
  a                        1 b/s
  ... and 3 more
end
`);
});

test('a long table is cut, and says so', () => {
    const rows = Array.from({ length: 50 }, (_, i) => [String(i)]);
    const text = toText([{ kind: 'table', head: ['N'], numeric: [true], rows, more: 0 }]);
    assert.match(text, /\.\.\. and 20 more\n$/);
    assert.equal(text.split('\n').length, 33);
});
