// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { age, bytes, clean, count, flowKey, flowText, hopsText, looksLikeFlow, nanoseconds, notInSums, percent, probability, rate, whyNot } from '../src/text.ts';

test('control characters are seen, not obeyed', () => {
    assert.equal(clean('leaf1'), 'leaf1');
    assert.equal(clean('a\x1b[31mb\n\u0000'), 'a␛[31mb␊␀');
    assert.equal(clean('x\u202egnp.exe'), 'x<U+202E>gnp.exe');
    assert.equal(clean('\u007f\u009b\u200b\ufeff'), '<U+007F><U+009B><U+200B><U+FEFF>');
    assert.equal(clean('Zürich 東京 🙂'), 'Zürich 東京 🙂');
});

test('figures', () => {
    assert.equal(rate(24_100_000_000), '24.1 Gb/s');
    assert.equal(rate(999_999), '1.00 Mb/s');
    assert.equal(rate(999_600_000), '1.00 Gb/s');
    assert.equal(rate(999_400_000), '999 Mb/s');
    assert.equal(rate(0), '0 b/s');
    assert.equal(rate(undefined), '–');
    assert.equal(bytes(-1_250_000), '-1.25 MB');
    assert.equal(nanoseconds(48_200), '48.2 µs');
    assert.equal(percent(0.964), '96.4 %');
    assert.equal(percent(1), '100 %');
    assert.equal(percent(0.00001), '<0.1 %');
    assert.equal(count(1234567), '1\u202f234\u202f567');
    assert.equal(count(2.75), '2.8');
    assert.equal(probability(5.1e-10), '<1e-6');
    assert.equal(probability(0.0311), '0.031');
    assert.equal(age(130_000), '2 min');
});

const v4 = { src: '10.0.1.2', dst: '10.0.4.6', sport: 50003, dport: 4791, proto: 17 };
const v6 = { src: 'fd00:1::1', dst: 'fd00:3::1', sport: 49441, dport: 4791, proto: 17 };

test('flows as the tool writes them', () => {
    assert.equal(flowText(v4), '10.0.1.2:50003-10.0.4.6');
    assert.equal(flowText(v6), '[fd00:1::1]:49441-[fd00:3::1]');
    assert.equal(flowText({ ...v4, dport: 80 }), '10.0.1.2:50003-10.0.4.6:80');
    assert.equal(flowText({ ...v4, dport: 80, proto: 6 }), '10.0.1.2:50003-10.0.4.6:80/6');
    assert.equal(flowText({ ...v6, proto: 6 }), '[fd00:1::1]:49441-[fd00:3::1]/6');
    assert.equal(flowKey(v6), 'fd00:1::1,fd00:3::1,49441,4791,17');
    for (const f of [flowText(v4), flowText(v6), '10.0.0.1:5-10.0.0.2:80', '10.0.1.1:49441-10.0.3.1:80/6', '[fd00::1]:5-[fd00::2]:80', flowKey(v4)]) assert.ok(looksLikeFlow(f), f);
    for (const f of ['leaf1', '10.0.0.1', 'fd00::1', '']) assert.ok(!looksLikeFlow(f), f);
});

test('hops', () => {
    assert.equal(hopsText([{ switch: 'leaf1', out: 'Ethernet51' }, { switch: 'spine1', out_lag: 'Po1' }, { switch: 'leaf4' }]), 'leaf1 Ethernet51 › spine1 Po1 › leaf4');
    assert.equal(hopsText(undefined), '–');
});

test('what sums of transfers lack', () => {
    assert.equal(notInSums(undefined), '');
    assert.equal(notInSums([{ rank: 0 }, { rank: 1, transfers_dropped: 0 }]), '');
    assert.equal(notInSums([{ rank: 0, transfers_dropped: 2, bytes_dropped: 1500 }, { rank: 1 }, { rank: 2, transfers_dropped: 1, bytes_dropped: 500 }]),
        '; not in them: 3 transfers of 2 ranks, 2.00 kB sent and received, as the lists of their agents were full');
});

test('why a path is not resolved is said in words', () => {
    const flow = { src: '10.9.9.9', dst: '10.0.4.6', sport: 1, dport: 4791, proto: 17 };
    assert.equal(whyNot({ flow, reason: 'unknown_source' }), 'the topology does not know 10.9.9.9');
    assert.equal(whyNot({ flow, reason: 'unknown_destination' }), 'the topology does not know 10.0.4.6');
    for (const reason of ['ambiguous', 'changing', 'unconfirmed', 'few_samples', 'no_samples', 'unknown_switch', 'no_route', 'off_path',
        'several_networks'])
        assert.match(whyNot({ flow, reason }), /^[^_]+ [^_]+ [^_]+$/, reason);
    assert.equal(whyNot({ flow, reason: 'several_networks', vni: 5001, other_vni: 5002 }),
        'flows of VNI 5001 and of VNI 5002 have its 5-tuple');
    assert.equal(whyNot({ flow, reason: 'of_tomorrow' }), 'of_tomorrow');
    assert.equal(whyNot({ flow }), '');
});
