// SPDX-License-Identifier: Apache-2.0
// The search field: a list below it, by keys as by pointer.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { useStore } from './hooks.ts';
import { entriesOf, find, type Entry } from './search.ts';
import { go, useHref } from './ui.tsx';

export function Search(): JSX.Element {
    const { topology, ranks } = useStore();
    const href = useHref();
    const [query, setQuery] = useState('');
    const [active, setActive] = useState(0);
    const entries = useMemo(() => (query ? entriesOf(topology ?? {}, ranks) : []), [topology, ranks, query !== '']);
    const found = useMemo(() => find(entries, query, 12), [entries, query]);
    const take = (e: Entry | undefined, field: HTMLElement | null) => {
        if (!e) return;
        setQuery('');
        field?.blur();
        go(href(e.view, e.names));
    };
    const open = query.trim() !== '';
    return (
        <div class="search" role="search" data-nocopy>
            <input id="search" type="text" value={query} placeholder="Search ( / )" role="combobox" aria-label="Search for address, host, switch, job or flow"
                aria-expanded={open && found.length > 0} aria-controls="found" aria-autocomplete="list" autocomplete="off" spellcheck={false}
                aria-activedescendant={open && found[active] ? `found-${active}` : undefined}
                onInput={(e) => { setQuery(e.currentTarget.value); setActive(0); }}
                onBlur={() => setTimeout(() => setQuery(''), 200)}
                onKeyDown={(e) => {
                    if (e.key === 'ArrowDown') setActive(Math.min(found.length - 1, active + 1));
                    else if (e.key === 'ArrowUp') setActive(Math.max(0, active - 1));
                    else if (e.key === 'Enter') take(found[active], e.currentTarget);
                    else if (e.key === 'Escape') { setQuery(''); e.currentTarget.blur(); } else return;
                    e.preventDefault();
                }} />
            <ul id="found" role="listbox" aria-label="Found" hidden={!open || found.length === 0}>
                {found.map((e, i) => (
                    <li key={`${e.kind}/${e.text}/${e.of}`} id={`found-${i}`} role="option" aria-selected={i === active}
                        onMouseDown={(ev) => { ev.preventDefault(); take(e, document.getElementById('search')); }}>
                        <b>{e.text}</b> <span>{e.of || e.kind}</span>
                    </li>
                ))}
            </ul>
            {open && found.length === 0 ? <p class="search-none" role="status">Nothing of that name.</p> : null}
        </div>
    );
}
