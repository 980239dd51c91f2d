// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { luminance, ofShare, ofUse, rgb, STEPS, palette } from '../src/scale.ts';

for (const dark of [false, true])
    test(`load reads in grey as well (${dark ? 'dark' : 'light'})`, () => {
        const light = Array.from({ length: 101 }, (_, i) => luminance(rgb(i / 100, dark)));
        for (let i = 1; i < light.length; i++)
            assert.ok(dark ? (light[i] ?? 0) > (light[i - 1] ?? 0) : (light[i] ?? 0) < (light[i - 1] ?? 0), `at ${i} %`);
        assert.equal(new Set(palette(dark)).size, STEPS);
    });

// Machado, Oliveira, Fernandes (2009), severity 1, on linear light.
const BLIND = {
    protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

for (const [name, matrix] of Object.entries(BLIND))
    for (const dark of [false, true])
        test(`load reads with ${name} (${dark ? 'dark' : 'light'})`, () => {
            const linear = (c: number) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
            const seen = [0, 0.2, 0.4, 0.6, 0.8, 1].map((t) => {
                const [r, g, b] = rgb(t, dark).map(linear) as [number, number, number];
                const [x = 0, y = 0, z = 0] = matrix.map((row) => Math.min(1, Math.max(0, (row[0] ?? 0) * r + (row[1] ?? 0) * g + (row[2] ?? 0) * b)));
                return 0.2126 * x + 0.7152 * y + 0.0722 * z;
            });
            for (let i = 1; i < seen.length; i++) {
                const [a, b] = [seen[i - 1] ?? 0, seen[i] ?? 0];
                assert.ok(dark ? b > a : b < a, `step ${i}: ${a} ${b}`);
            }
        });

test('values outside stay on the scale', () => {
    assert.equal(ofUse(1.4), 1);
    assert.equal(ofUse(-1), 0);
    assert.equal(ofShare(9), 1);
});
