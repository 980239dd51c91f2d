// SPDX-License-Identifier: Apache-2.0
// Figures of windows on an axis of time: where no window was kept there is no line, and one that stands
// alone is a point; what the axis says of days. Pure.
import { clock, day, hours } from './text.ts';

export type Values = (number | null)[];

export interface Laid {
    /** Unix milliseconds, rising. */
    times: number[];
    values: Values[];
}

interface Spanned {
    window_start_ms?: number | undefined;
    window_end_ms?: number | undefined;
}

/** Whether a window is missing between two; less than half of one is none. */
export function isGap(before: { start: number; end: number }, after: { start: number }): boolean {
    return after.start - before.end > Math.max(0, before.end - before.start) / 2;
}

/** What each of `of` says of each record, in order of time, with null for all where windows are missing. */
export function lay<R extends Spanned>(records: R[], of: ((record: R) => number | undefined)[]): Laid {
    const laid: Laid = { times: [], values: of.map(() => []) };
    const add = (ms: number, figures: (number | null)[]) => {
        laid.times.push(ms);
        laid.values.forEach((v, i) => v.push(figures[i] ?? null));
    };
    let before: { start: number; end: number } | undefined;
    for (const r of records.slice().sort((a, b) => (a.window_start_ms ?? 0) - (b.window_start_ms ?? 0))) {
        const start = r.window_start_ms ?? 0;
        const here = { start, end: r.window_end_ms ?? start };
        if (before && start === before.start) continue;
        if (before && isGap(before, here)) add(before.end, []);
        add(start, of.map((f) => f(r) ?? null));
        before = here;
    }
    return laid;
}

/** Indices of values that no line shows: there is none before and none after. */
export function alone(values: ArrayLike<number | null | undefined>): number[] {
    const found: number[] = [];
    const is = (i: number) => values[i] !== null && values[i] !== undefined;
    for (let i = 0; i < values.length; i++) if (is(i) && !is(i - 1) && !is(i + 1)) found.push(i);
    return found;
}

const DAY_S = 86_400;

/** The texts at ticks (seconds), `step` apart: hours, below them the day where it is another one than at the tick
 * before, or is not today. */
export function ticksText(ticks: number[], step: number, now: number = Date.now()): string[] {
    const today = day(now);
    const days = ticks.map((t) => day(t * 1000));
    const named = days.some((d) => d !== today);
    return ticks.map((t, i) => {
        const text = days[i] ?? '';
        if (step >= DAY_S) return text;
        const time = step < 60 ? hours(t * 1000) : hours(t * 1000).slice(0, 5);
        return named && text !== days[i - 1] ? `${time}\n${text}` : time;
    });
}

/** Of a moment under the pointer. */
export function momentText(seconds: number | null | undefined, now: number = Date.now()): string {
    return clock(seconds === null || seconds === undefined ? undefined : seconds * 1000, now);
}
