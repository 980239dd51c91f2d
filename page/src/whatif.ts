// SPDX-License-Identifier: Apache-2.0
// What-if, as figures to draw: of each policy the range over its draws, beside what was measured.
import type { Draws, Errors, Hop, MovedFlow, WhatIf } from './records.ts';
import { count, NONE, plural } from './text.ts';

export interface Range {
    policy: string;
    draws: number;
    min: number;
    mean: number;
    max: number;
}

/** One figure under all policies, in percent. */
export interface Figure {
    title: string;
    measured: number | undefined;
    ranges: Range[];
    /** Where its axis ends. */
    top: number;
}

const STEPS = [1, 2, 5, 10];

/** The least of 1, 2, 5 times a power of ten that is no less. */
export function topOf(value: number): number {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return (STEPS.find((s) => s * power >= value * (1 - 1e-9)) ?? 10) * power;
}

function figure(title: string, records: WhatIf[], of: (r: WhatIf) => Draws | undefined, scale: number, measured: number | undefined): Figure {
    const ranges: Range[] = [];
    for (const r of records) {
        const draws = of(r);
        if (draws?.min === undefined || draws.mean === undefined || draws.max === undefined) continue;
        ranges.push({
            policy: r.figures?.policy ?? '?', draws: r.figures?.draws ?? 1,
            min: draws.min * scale, mean: draws.mean * scale, max: draws.max * scale,
        });
    }
    return { title, measured, ranges, top: topOf(Math.max(measured ?? 0, ...ranges.map((r) => r.max))) };
}

/** Those of an answer: it begins with what was measured. */
export function figuresOf(records: WhatIf[]): Figure[] {
    const measured = records.find((r) => r.figures?.policy === 'measured')?.figures;
    const computed = records.filter((r) => r.figures?.policy !== 'measured');
    const load = measured?.hottest_load;
    const all = [figure('Hottest link, of its speed', computed, (r) => r.figures?.load_most, 100, load === undefined ? undefined : 100 * load)];
    for (const layer of computed[0]?.figures?.layers ?? []) {
        const name = layer.name;
        all.push(figure(`FIM of ${name}`, computed, (r) => r.figures?.layers?.find((l) => l.name === name)?.fim, 1,
            measured?.layers?.find((l) => l.name === name)?.fim?.mean));
    }
    all.push(figure('Slowest flow, of the rate that it wants', computed, (r) => r.figures?.slowest_share, 100, undefined));
    return all.filter((f) => f.ranges.length > 0);
}

function number(value: number): string {
    return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

/** "75.0 %", or "52.0 to 110 %, mean 80.1 % of 20 draws". */
export function rangeText(r: Range): string {
    if (r.min === r.max) return `${number(r.mean)} %${r.draws > 1 ? ` in all ${count(r.draws)} draws` : ''}`;
    return `${number(r.min)} to ${number(r.max)} %, mean ${number(r.mean)} % of ${count(r.draws)} draws`;
}

function errorText(what: string, e: Errors | undefined): string {
    if (!e?.count || e.median === undefined || e.worst === undefined) return `${what}: none to compare`;
    return `${what}: ${count(e.count)} compared, median ${number(100 * e.median)} %, worst ${number(100 * e.worst)} %`;
}

/** How far the model is off where it can be checked; never left out. */
export function errorsOf(record: WhatIf | undefined): string[] {
    const e = record?.error;
    return [errorText('rates of flows', e?.rates), errorText('of these behind a full link', e?.limited), errorText('loads of links', e?.loads)];
}

/** How many flows the figures are of, and why others are not. */
export function flowsText(record: WhatIf | undefined): string {
    const out = [
        [record?.unresolved, 'without a known path'], [record?.sprayed, 'on several paths at once'],
        [record?.source_routed, 'with their path in their address'],
        [record?.strangers, 'of hosts outside the topology'], [record?.small, 'small'], [record?.beyond, 'beyond what is computed with'],
    ].filter(([n]) => n).map(([n, why]) => `${count(n as number)} ${String(why)}`);
    const said = record?.flows === undefined ? NONE : plural(record.flows, 'flow');
    return out.length === 0 ? said : `${said}; left out: ${out.join(', ')}`;
}

/** Flows that the plan moves, and how many they are in all; nothing where it moves none. */
export function movesOf(records: WhatIf[]): { moved: MovedFlow[]; of: number } | undefined {
    const plan = records.find((r) => r.figures?.policy === 'plan');
    const moved = plan?.moved ?? [];
    return moved.length === 0 ? undefined : { moved, of: Math.max(moved.length, plan?.figures?.moves?.mean ?? 0) };
}

/** "leaf1 Ethernet51 > spine1 Ethernet2 > leaf2": what distinguishes paths between the same hosts. */
export function pathText(hops: Hop[] | undefined): string {
    const all = hops ?? [];
    return all.length === 0 ? NONE : all.map((h, i) => (i + 1 === all.length ? h.switch ?? '?' : `${h.switch ?? '?'} ${h.out ?? '?'}`)).join(' > ');
}
