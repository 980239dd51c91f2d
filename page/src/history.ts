// SPDX-License-Identifier: Apache-2.0
// What the page itself remembers of imbalance since it was opened, where the daemon keeps no history.
// Bounded: the oldest windows go. Pure.
import type { Imbalance, Window } from './records.ts';

export class Memory {
    private readonly windows: { start: number; end: number; records: Map<string, Imbalance> }[] = [];

    constructor(private readonly max: number, private readonly groupsMax: number) {}

    add({ window_start_ms: start, window_end_ms: end }: Window, records: Imbalance[]): void {
        const last = this.windows[this.windows.length - 1];
        if (last && last.end >= end) return;
        const groups = records.filter((r) => r.scope === 'group').length;
        const keep = groups > this.groupsMax ? records.filter((r) => r.scope !== 'group') : records;
        this.windows.push({ start, end, records: new Map(keep.map((r) => [imbalanceKey(r), r])) });
        while (this.windows.length > this.max) this.windows.shift();
    }

    /** Oldest first. */
    of(key: string): Imbalance[] {
        return this.windows.flatMap((w) => w.records.get(key) ?? []);
    }

    spans(): { start: number; end: number }[] {
        return this.windows.map(({ start, end }) => ({ start, end }));
    }
}

/** The key of its record. */
export function imbalanceKey(r: Imbalance): string {
    return `${r.scope ?? ''}/${r.name ?? ''}`;
}
