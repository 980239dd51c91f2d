// SPDX-License-Identifier: Apache-2.0
// The band of FIM that chance explains: where FIM lies in 90 of 100 cases when each of n flows chooses
// one of m links at random. The daemon says what is expected; the band is drawn here by as many dice
// as that needs, with a fixed seed, so that it stands still. Pure.
import type { Imbalance } from './records.ts';

const DRAWS = 400;
const EXACT_FLOWS = 512; // above it a link's number of flows is as good as normal
const CACHE_MAX = 4096;

function generator(seed: number): () => number {
    let a = seed >>> 0;
    // mulberry32
    return () => {
        a = (a + 0x6d2b79f5) >>> 0;
        let t = Math.imul(a ^ (a >>> 15), a | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
}

export function fim(loads: ArrayLike<number>): number {
    let sum = 0;
    for (let i = 0; i < loads.length; i++) sum += loads[i] ?? 0;
    const mean = sum / loads.length;
    let apart = 0;
    for (let i = 0; i < loads.length; i++) apart += Math.abs((loads[i] ?? 0) - mean);
    return sum === 0 ? NaN : (100 * apart) / (mean * loads.length);
}

function draw(flows: number, links: number, random: () => number, loads: Float64Array): void {
    loads.fill(0);
    if (flows <= EXACT_FLOWS) {
        for (let f = 0; f < flows; f++) {
            const i = Math.floor(random() * links);
            loads[i] = (loads[i] ?? 0) + 1;
        }
        return;
    }
    const mean = flows / links;
    const spread = Math.sqrt(mean * (1 - 1 / links));
    for (let i = 0; i < links; i++) {
        const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
        loads[i] = Math.max(0, mean + spread * normal);
    }
}

/** What FIM chance gives n flows on m links (fabrictrace-records(7)). */
export function expected(flows: number, links: number): number {
    const p = 1 / links;
    const k = Math.floor(flows * p) + 1;
    if (k > flows) return 200 * (1 - p) ** flows;
    let log = 0; // of C(n, k)
    for (let i = 1; i <= k; i++) log += Math.log(flows - k + i) - Math.log(i);
    return (200 * k * Math.exp(log + k * Math.log(p) + (flows - k + 1) * Math.log(1 - p))) / (flows * p);
}

/** As many flows on m links as have that FIM by chance. */
function flowsFor(fimExpected: number, links: number): number {
    let low = 1;
    let high = 2;
    while (high < 1e7 && expected(high, links) > fimExpected) high *= 2;
    while (high - low > Math.max(1, low / 100)) {
        const middle = Math.floor((low + high) / 2);
        if (expected(middle, links) > fimExpected) low = middle;
        else high = middle;
    }
    return high;
}

export interface Band {
    low: number;
    middle: number;
    high: number;
}

interface Dice extends Band {
    deviation: number;
}

const cache = new Map<string, Dice>();

function dice(flows: number, links: number): Dice {
    // Beyond two digits the number of flows moves no line.
    const steps = flows < 100 ? 1 : 10 ** (Math.floor(Math.log10(flows)) - 1);
    const n = Math.round(flows / steps) * steps;
    const key = `${n}/${links}`;
    const known = cache.get(key);
    if (known) return known;
    const random = generator(n * 7919 + links);
    const loads = new Float64Array(links);
    const seen: number[] = [];
    let sum = 0;
    let squares = 0;
    for (let i = 0; i < DRAWS; i++) {
        draw(n, links, random, loads);
        const value = fim(loads);
        seen.push(value);
        sum += value;
        squares += value * value;
    }
    seen.sort((a, b) => a - b);
    const at = (q: number) => seen[Math.floor(q * (DRAWS - 1))] ?? NaN;
    const middle = sum / DRAWS;
    const found = { low: at(0.05), middle, high: at(0.95), deviation: Math.sqrt(Math.max(0, squares / DRAWS - middle * middle)) };
    if (cache.size >= CACHE_MAX) cache.clear();
    cache.set(key, found);
    return found;
}

/** Of one group; undefined where there is nothing to choose. */
export function band(flows: number | undefined, links: number | undefined): Band | undefined {
    return flows && links && links >= 2 ? dice(flows, links) : undefined;
}

const ALIKE = 0.25;

/** A group's; undefined where what is expected of it is not what flows give that choose alike among all of
 * its links: some cannot take all, or switches weigh them. The dice know nothing of that. */
function bandOfGroup(r: Imbalance): Band | undefined {
    const one = band(r.flows, r.links);
    if (!one || r.fim_expected === undefined) return one;
    return Math.abs(r.fim_expected - one.middle) > ALIKE * one.middle ? undefined : one;
}

const Z90 = 1.645; // 90 of 100 lie within so many deviations

/** Of a record. A layer's figure and the fabric's are means over groups, each flow counted in every
 * group that it crosses: as many groups of a size, which chance gives what the record says. */
export function bandOf(r: Imbalance): Band | undefined {
    const groups = (r.groups ?? 1) - (r.idle_groups ?? 0);
    if (r.scope === 'group' || groups < 1 || !r.groups) return bandOfGroup(r);
    const links = Math.round((r.links ?? 0) / r.groups);
    if (links < 2 || r.fim_expected === undefined || !r.flows) return undefined;
    const one = dice(flowsFor(r.fim_expected, links), links);
    const apart = (Z90 * one.deviation) / Math.sqrt(groups);
    return { low: Math.max(0, r.fim_expected - apart), middle: r.fim_expected, high: r.fim_expected + apart };
}
