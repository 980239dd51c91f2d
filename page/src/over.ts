// SPDX-License-Identifier: Apache-2.0
// Events of the last hour, also those that are over: asked for once, then only what stood or ended since.
import { all } from './api.ts';
import type { Event } from './records.ts';

export const OVER_MS = 3_600_000;

function idOf(e: Event): string {
    return `${e.kind}/${e.subject}/${e.since_ms ?? e.time_ms}`;
}

/** What is known with the answer about a later time: all that stood then, ended or happened since is in it. Of
 * what was known before stays what is no longer ago than `from`. */
export function merged(before: Event[], news: Event[], from: number): Event[] {
    const known = new Set(news.map(idOf));
    return [...news, ...before.filter((e) => !known.has(idOf(e)) && (e.time_ms ?? 0) >= from)];
}

interface Held {
    epoch: number;
    to: number;
    events: Event[];
}

export class Over {
    private held: Held | undefined;
    private asking: { to: number; epoch: number; events: Promise<Event[]> } | undefined;

    /** What is known by now, of that daemon. */
    of(epoch: number): Event[] | undefined {
        return this.held?.epoch === epoch ? this.held.events : undefined;
    }

    /** With the window that ends then; two that ask for the same wait for one answer. */
    ask(to: number, epoch: number): Promise<Event[]> {
        const was = this.held?.epoch === epoch ? this.held : undefined;
        if (was && was.to >= to) return Promise.resolve(was.events);
        if (this.asking?.to === to && this.asking.epoch === epoch) return this.asking.events;
        const from = to - OVER_MS;
        const since = Math.max(was?.to ?? from, from);
        const events = all<Event>('events', { from_ms: since })
            .then(({ records }) => {
                const found = was ? merged(was.events, records, from) : records;
                this.held = { epoch, to, events: found };
                return found;
            })
            .finally(() => { this.asking = undefined; });
        this.asking = { to, epoch, events };
        return events;
    }
}

export const over = new Over();
