// SPDX-License-Identifier: Apache-2.0
// One direction of a link in colour, in width and in words. Pure.
import type { Way } from './model.ts';
import { css, ofShare, ofUse } from './scale.ts';
import { clean, percent, plural, rate, ratio } from './text.ts';

export type Measure = 'use' | 'share';

/** Where it lies on the scale, undefined where there is nothing to say. */
export function level(way: Way, measure: Measure): number | undefined {
    if (way.state !== 'used') return undefined;
    if (measure === 'share') return way.times === undefined ? undefined : ofShare(way.times);
    return way.use === undefined ? undefined : ofUse(way.use);
}

export function colour(way: Way, measure: Measure, dark: boolean): string | undefined {
    const at = level(way, measure);
    return at === undefined ? undefined : css(at, dark);
}

/** Of a line in pixels: 2 at 10 Gb/s, 3.4 at 100, 4.4 at 400. */
export function width(speed: number | undefined): number {
    const gb = (speed ?? 1e11) / 1e9;
    return Math.min(6, 2 + 0.45 * Math.log2(Math.max(1, gb / 10)));
}

export function sentence(way: Way): string {
    const link = way.link;
    const ends = `${way.switch} ${way.port} to ${way.peer} ${way.peerPort}`;
    if (way.state === 'down') return clean(`${ends}: down`);
    if (way.state === 'shut') return clean(`${ends}: shut down by an administrator`);
    if (way.state === 'unseen') return clean(`${ends}: not seen in this window`);
    if (way.state === 'idle') return clean(`${ends}: idle${way.speed ? `, ${rate(way.speed)}` : ''}`);
    const parts = [
        way.use === undefined ? '' : `${percent(way.use)}${way.speed ? ` of ${rate(way.speed)}` : ''}`,
        link?.flows === undefined ? '' : plural(Math.round(link.flows), 'flow'),
        way.times === undefined ? '' : `${ratio(way.times)} × its even share`,
        link?.discards ? `${plural(link.discards, 'discard')}` : '',
    ];
    return clean(`${ends}: ${parts.filter((p) => p).join(', ')}`);
}
