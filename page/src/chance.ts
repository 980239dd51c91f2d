// SPDX-License-Identifier: Apache-2.0
// The band of FIM that chance explains: where FIM lies in 90 of 100 cases when each of n flows chooses
// one of m links at random. The daemon says what is expected; the band is drawn here by as many dice
// as that needs, with a fixed seed, so that it stands still. Pure.

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

export interface Band {
    low: number;
    middle: number;
    high: number;
}

const cache = new Map<string, Band>();

/** undefined where there is nothing to choose. */
export function band(flows: number | undefined, links: number | undefined): Band | undefined {
    if (!flows || !links || links < 2) return undefined;
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
    for (let i = 0; i < DRAWS; i++) {
        draw(n, links, random, loads);
        const value = fim(loads);
        seen.push(value);
        sum += value;
    }
    seen.sort((a, b) => a - b);
    const at = (q: number) => seen[Math.floor(q * (DRAWS - 1))] ?? NaN;
    const found = { low: at(0.05), middle: sum / DRAWS, high: at(0.95) };
    if (cache.size >= CACHE_MAX) cache.clear();
    cache.set(key, found);
    return found;
}
