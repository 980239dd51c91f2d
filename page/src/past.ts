// SPDX-License-Identifier: Apache-2.0
// The history of a key, window by window: asked for once, then only what is new of it; what the daemon no
// longer keeps goes here as well.
import { all } from './api.ts';
import type { Window } from './records.ts';

/** Keys of which it is remembered. */
const HELD = 8;

interface Spanned {
    window_start_ms?: number | undefined;
    window_end_ms?: number | undefined;
}

/** What is kept since `from`, by the end of its window, oldest first: of a window that both have, what is new. */
export function joined<R extends Spanned>(before: R[], news: R[], from: number): R[] {
    const by = new Map<number, R>();
    for (const r of [...before, ...news]) if ((r.window_end_ms ?? 0) > from) by.set(r.window_end_ms ?? 0, r);
    return [...by].sort((a, b) => a[0] - b[0]).map(([, r]) => r);
}

/** The windows that a daemon keeps, and which daemon that is: another number, another one. */
export interface Keeping {
    windows: Window[] | undefined;
    epoch: number;
}

interface Held {
    epoch: number;
    /** The end of the last window that was there when it was asked. */
    to: number;
    records: Spanned[];
}

export class Past {
    private readonly held = new Map<string, Held>();
    private readonly asking = new Map<string, Promise<Spanned[]>>();

    /** What is known by now. */
    of<R extends Spanned>(kind: string, key: string, epoch: number): R[] | undefined {
        const held = this.held.get(`${kind}/${key}`);
        return held?.epoch === epoch ? (held.records as R[]) : undefined;
    }

    /** Up to the last of the windows that are kept; two that ask for the same wait for one answer. */
    ask<R extends Spanned>(kind: string, key: string, { windows = [], epoch }: Keeping): Promise<R[]> {
        const name = `${kind}/${key}`;
        const held = this.held.get(name);
        const was = held?.epoch === epoch ? held : undefined;
        const to = windows[windows.length - 1]?.window_end_ms ?? 0;
        if (was && was.to >= to) return Promise.resolve(was.records as R[]);
        const once = `${epoch}/${to}/${name}`;
        const asked = this.asking.get(once) ?? this.fetch(kind, key, was?.to)
            .then((news) => this.hold(name, { epoch, to, records: joined(was?.records ?? [], news, windows[0]?.window_start_ms ?? 0) }))
            .finally(() => this.asking.delete(once));
        this.asking.set(once, asked);
        return asked as Promise<R[]>;
    }

    private async fetch(kind: string, key: string, from: number | undefined): Promise<Spanned[]> {
        return (await all<Spanned>('history', { kind, key, from_ms: from })).records;
    }

    private hold(name: string, held: Held): Spanned[] {
        this.held.delete(name);
        this.held.set(name, held);
        for (const oldest of this.held.keys()) if (this.held.size > HELD) this.held.delete(oldest);
        return held.records;
    }
}

export const past = new Past();
