// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system is, or as it was chosen in this browser; on paper light, with all that is folded.

type Theme = 'light' | 'dark';

const KEY = 'fabrictrace theme';
const system = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();

/** There is no storage where the browser refuses it: then a choice lasts until the page is left. */
function storage<T>(work: (s: Storage) => T): T | undefined {
    try {
        return work(localStorage);
    } catch {
        return undefined;
    }
}

function put(theme: Theme | undefined): void {
    if (theme) document.documentElement.dataset['theme'] = theme;
    else delete document.documentElement.dataset['theme'];
    for (const l of listeners) l();
}

function stored(): Theme | undefined {
    const theme = storage((s) => s.getItem(KEY));
    return theme === 'light' || theme === 'dark' ? theme : undefined;
}

export function isDark(): boolean {
    const chosen = document.documentElement.dataset['theme'];
    return chosen ? chosen === 'dark' : system.matches;
}

/** The other one; what the system has is followed from then on. */
export function changeTheme(): void {
    const theme = isDark() ? 'light' : 'dark';
    const chosen = system.matches === (theme === 'dark') ? undefined : theme;
    storage((s) => (chosen ? s.setItem(KEY, chosen) : s.removeItem(KEY)));
    put(chosen);
}

/** Calls it whenever it may be another one; the answer ends that. */
export function whenTheme(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

/** What was chosen before, here or in another tab, and what paper asks for. */
export function keepTheme(): void {
    put(stored());
    system.addEventListener('change', () => { for (const l of listeners) l(); });
    addEventListener('storage', (e) => { if (e.key === KEY || e.key === null) put(stored()); });
    let before: string | undefined;
    let folded: HTMLDetailsElement[] = [];
    addEventListener('beforeprint', () => {
        before = document.documentElement.dataset['theme'];
        folded = [...document.querySelectorAll<HTMLDetailsElement>('details:not([open])')];
        for (const d of folded) d.open = true;
        put('light');
    });
    addEventListener('afterprint', () => {
        for (const d of folded) d.open = false;
        put(before as Theme | undefined);
    });
}
