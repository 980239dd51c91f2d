// SPDX-License-Identifier: Apache-2.0
// How components look at the store, ask questions of their own, and know the space that they have.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, Refusal, target, type Query } from './api.ts';
import { over } from './over.ts';
import { past } from './past.ts';
import type { Event, Window } from './records.ts';
import { holds, store, type State } from './store.ts';
import { isDark, whenTheme } from './theme.ts';

export function useStore(): State {
    const [state, set] = useState(store.state);
    useEffect(() => {
        set(store.state);
        return store.subscribe(() => set(store.state));
    }, []);
    return state;
}

/** Whether what is shown is of a window before; flows, ranks and what the doctor says are of now all the same. */
export function usePast(): boolean {
    const { at, window: shown } = useStore();
    return at !== undefined && holds(shown, at);
}

export interface Asked<T> {
    answer: T | undefined;
    /** In words, where there is no answer. */
    refusal: string;
    /** The daemon does not know this question. */
    absent: boolean;
}

/** The answer to a question, asked anew with each window; what != '' asks. The last answer stays until
 * the next is there. */
export function useAnswer<T>(what: string, query: Query = {}): Asked<T> {
    const { window: shown, at } = useStore();
    const [asked, set] = useState<Asked<T> & { for: string }>({ answer: undefined, refusal: '', absent: false, for: '' });
    const url = what ? target(what, query) : '';
    useEffect(() => {
        if (!url) return undefined;
        const stop = new AbortController();
        get<T>(what, query, stop.signal).then(
            (answer) => set({ answer, refusal: '', absent: false, for: url }),
            (error: unknown) => {
                if (stop.signal.aborted) return;
                const missing = error instanceof Refusal && error.status === 404;
                set({ answer: undefined, refusal: error instanceof Error ? error.message : String(error), absent: missing, for: url });
            });
        return () => stop.abort();
    }, [url, at === undefined ? shown?.window_end_ms : at]);
    return asked.for === url || asked.for === '' ? asked : { answer: undefined, refusal: '', absent: false };
}

/** What is kept of a key, oldest first; key '' asks nothing. What is known stays where the daemon refuses what is new. */
export function useHistory<R extends Partial<Window>>(kind: string, key: string): { records: R[] | undefined; refusal: string } {
    const { windows, keeps, epoch } = useStore();
    const [refused, refuse] = useState({ key: '', why: '' });
    const [, renew] = useState<unknown>();
    const last = windows?.[windows.length - 1]?.window_end_ms;
    useEffect(() => {
        if (!keeps || !key) return undefined;
        let left = false;
        past.ask<R>(kind, key, { windows, epoch }).then(
            (records) => { if (!left) { refuse({ key: '', why: '' }); renew(records); } },
            (error: unknown) => { if (!left) refuse({ key, why: error instanceof Error ? error.message : String(error) }); });
        return () => { left = true; };
    }, [keeps, kind, key, epoch, last]);
    return { records: keeps && key ? past.of<R>(kind, key, epoch) : undefined, refusal: refused.key === key ? refused.why : '' };
}

/** The events of the last hour, also those that are over; on: false asks nothing. What is known stays where the
 * daemon refuses what is new. */
export function useOver(on: boolean): { events: Event[] | undefined; refusal: string } {
    const { window: shown, epoch } = useStore();
    const [refusal, refuse] = useState('');
    const [, renew] = useState<unknown>();
    const to = on ? shown?.window_end_ms : undefined;
    useEffect(() => {
        if (to === undefined) return undefined;
        let left = false;
        over.ask(to, epoch).then(
            (events) => { if (!left) { refuse(''); renew(events); } },
            (error: unknown) => { if (!left) refuse(error instanceof Error ? error.message : String(error)); });
        return () => { left = true; };
    }, [to, epoch]);
    return { events: to === undefined ? undefined : over.of(epoch), refusal: to === undefined ? '' : refusal };
}

/** The width of an element, as it changes. */
export function useWidth<E extends Element>(): [{ current: E | null }, number] {
    const ref = useRef<E>(null);
    const [width, set] = useState(0);
    useEffect(() => {
        const e = ref.current;
        if (!e) return undefined;
        const observer = new ResizeObserver(() => set(Math.floor(e.getBoundingClientRect().width)));
        observer.observe(e);
        return () => observer.disconnect();
    }, []);
    return [ref, width];
}

/** Whether the screen is as a query of CSS says. */
export function useMedia(text: string): boolean {
    const [is, set] = useState(() => matchMedia(text).matches);
    useEffect(() => {
        const media = matchMedia(text);
        const look = () => set(media.matches);
        media.addEventListener('change', look);
        look();
        return () => media.removeEventListener('change', look);
    }, [text]);
    return is;
}

export function useDark(): boolean {
    const [dark, set] = useState(isDark());
    useEffect(() => whenTheme(() => set(isDark())), []);
    return dark;
}
