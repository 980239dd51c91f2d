// SPDX-License-Identifier: Apache-2.0
// How far a view was scrolled, kept with its entry of the browser's history: the way back leads to the row that one
// came from, also where the view's answers come later than the view.

const STILL_MS = 150;
const GIVE_UP_MS = 5000;

let timer: ReturnType<typeof setTimeout> | undefined;
let giveUp: ReturnType<typeof setTimeout> | undefined;
/** Where to; undefined: there, or the person has taken over. */
let wanted: number | undefined;

function reach(): void {
    if (wanted === undefined) return;
    scrollTo(0, wanted);
    if (document.documentElement.scrollHeight - innerHeight >= wanted) wanted = undefined;
}

/** Another view is shown: from its top, or from where it was left. */
export function arrive(): void {
    clearTimeout(timer);
    clearTimeout(giveUp);
    const state = history.state as { scroll?: number } | null;
    wanted = state?.scroll ?? 0;
    giveUp = setTimeout(() => { wanted = undefined; }, GIVE_UP_MS);
    reach();
}

export function keepScroll(): void {
    history.scrollRestoration = 'manual';
    addEventListener('scroll', () => {
        if (wanted !== undefined) return;
        clearTimeout(timer);
        const here = location.href;
        timer = setTimeout(() => {
            if (location.href === here) history.replaceState({ scroll: scrollY }, '');
        }, STILL_MS);
    }, { passive: true });
    // The entry that is current from here on is another one.
    addEventListener('popstate', () => clearTimeout(timer));
    for (const kind of ['wheel', 'touchstart', 'pointerdown', 'keydown'])
        addEventListener(kind, () => { wanted = undefined; }, { passive: true });
    new ResizeObserver(reach).observe(document.body);
}
