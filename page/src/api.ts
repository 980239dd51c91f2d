// SPDX-License-Identifier: Apache-2.0
// Questions to the daemon that served the page.
import type { Answer } from './records.ts';
import { authorization, heed, token } from './token.ts';

/** From where the page came, which may be below a path of a proxy. */
const BASE = 'api/v1/';
const PAGES_MAX = 64;
/** A connection that a network lost on the way never ends by itself. */
const ANSWER_MS = 60_000;

/** What the daemon said instead of an answer. status 0: it did not answer. */
export class Refusal extends Error {
    constructor(readonly status: number, text: string) {
        super(text);
    }
}

export type Query = Record<string, string | number | undefined>;

export function target(what: string, query: Query = {}): string {
    const pairs = Object.entries(query)
        .filter(([, v]) => v !== undefined && v !== '')
        .map(([k, v]) => `${encodeURIComponent(k)}=${encodeURIComponent(String(v))}`);
    return `${BASE}${what}${pairs.length ? `?${pairs.join('&')}` : ''}`;
}

async function refusalOf(response: Response): Promise<Refusal> {
    const text = (await response.text().catch(() => '')).trim();
    let said = text;
    if ((response.headers.get('content-type') ?? '').includes('json')) {
        try {
            const problem = JSON.parse(text) as { detail?: string; title?: string };
            said = problem.detail ?? problem.title ?? text;
        } catch {
            // The words as they are.
        }
    }
    return new Refusal(response.status, said.slice(0, 300) || `the daemon answers ${response.status}`);
}

/** The answer, read to its end by `read`, or a Refusal where there is none in time. */
async function ask<T>(url: string, read: (response: Response) => Promise<T>, signal?: AbortSignal, limitMs: number = ANSWER_MS): Promise<T> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), limitMs);
    const left = () => stop.abort();
    signal?.addEventListener('abort', left);
    try {
        if (signal?.aborted) stop.abort();
        const shown = token();
        const response = await fetch(url, { signal: stop.signal, headers: { Accept: 'application/json', ...authorization() } });
        heed(response, shown);
        if (!response.ok) throw await refusalOf(response);
        return await read(response);
    } catch (error) {
        if (signal?.aborted || error instanceof Refusal || error instanceof SyntaxError) throw error;
        throw new Refusal(0, 'the daemon does not answer');
    } finally {
        clearTimeout(timer);
        signal?.removeEventListener('abort', left);
    }
}

export async function get<T>(what: string, query: Query = {}, signal?: AbortSignal, limitMs?: number): Promise<T> {
    return ask(target(what, query), (response) => response.json() as Promise<T>, signal, limitMs);
}

/** The daemon's tag of an answer that we hold. */
const tags = new WeakMap<object, string>();

/** What was answered before, the same object, where the daemon's tag says that it still holds. */
export async function changed<T extends object>(what: string, before: T | undefined, signal?: AbortSignal): Promise<T> {
    return ask(target(what), async (response) => {
        const tag = response.headers.get('etag');
        if (before !== undefined && tag !== null && tags.get(before) === tag) {
            await response.body?.cancel();
            return before;
        }
        const answer = (await response.json()) as T;
        if (tag !== null) tags.set(answer, tag);
        return answer;
    }, signal);
}

/** A list, all its pages. */
export async function all<T>(what: string, query: Query = {}, signal?: AbortSignal): Promise<Answer<T>> {
    const first = await get<Answer<T>>(what, query, signal);
    let next = first.next;
    for (let i = 1; next && i < PAGES_MAX; i++) {
        const more: Answer<T> = await get<Answer<T>>(what, { ...query, cursor: next }, signal);
        for (const record of more.records) first.records.push(record);
        next = more.next;
    }
    delete first.next;
    return first;
}
