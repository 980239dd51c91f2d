// SPDX-License-Identifier: Apache-2.0
// The token of a daemon that wants one (http_token_file): as long as this tab is open, in its own storage and
// in the header of each question; never in an address, which is kept, passed on and logged.

type Listener = () => void;

let held: string | undefined;
let read = false;
const listeners = new Set<Listener>();

/** By the folder that the page came from: one proxy may stand before several daemons. */
function key(): string {
    return `fabrictrace token of ${new URL('.', location.href.replace(/[?#].*/s, '')).pathname}`;
}

/** The tab's storage; there is none where the browser refuses it, or outside of one. */
function storage(work: (s: Storage) => void): void {
    try {
        work(sessionStorage);
    } catch {
        // What is held here has to do, until the next reload.
    }
}

export function token(): string | undefined {
    if (!read) {
        read = true;
        storage((s) => { held = s.getItem(key()) ?? undefined; });
    }
    return held;
}

/** Whether a header can carry it. */
export function isToken(text: string): boolean {
    return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text);
}

export function holdToken(text: string): void {
    read = true;
    held = text;
    storage((s) => s.setItem(key(), text));
}

export function forgetToken(): void {
    read = true;
    held = undefined;
    storage((s) => s.removeItem(key()));
}

/** Whether this tab has logged out, or in anew, while the page stood in the browser's memory of pages that were left. */
export function isStale(): boolean {
    let stored = held;
    storage((s) => { stored = s.getItem(key()) ?? undefined; });
    return stored !== token();
}

export function authorization(): Record<string, string> {
    const text = token();
    return text === undefined ? {} : { Authorization: `Bearer ${text}` };
}

/** Called where the daemon wants a token, or another one than it was shown. */
export function whenRefused(listener: Listener): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

/** Looks whether an answer to a question that showed `shown` is such a refusal. An answer that is late says nothing of
 * the token that is held since; a proxy's own 401 is of another scheme. */
export function heed(response: Response, shown: string | undefined): void {
    if (response.status !== 401 || !/^bearer\b/i.test(response.headers.get('www-authenticate') ?? '')) return;
    if (shown === token()) for (const l of listeners) l();
}
