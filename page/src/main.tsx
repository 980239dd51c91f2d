// SPDX-License-Identifier: Apache-2.0
// The page: head, banner, the view that the address names, and the keys.
import { options, render, type JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { blocksOf, toText } from './copytext.ts';
import { usePast, useStore } from './hooks.ts';
import { Lock, logOut } from './lock.tsx';
import { format } from './route.ts';
import { arrive, keepScroll } from './scroll.ts';
import { Scrubber } from './scrubber.tsx';
import { Search } from './searchfield.tsx';
import { hasLinks, holds, store, waits } from './store.ts';
import { between, clean, clock, count, stamp, zone } from './text.ts';
import { changeTheme, keepTheme } from './theme.ts';
import { isStale, token } from './token.ts';
import { A, change, changeMoment, Empty, go } from './ui.tsx';
import { EventsView } from './views/events.tsx';
import { FabricView } from './views/fabric.tsx';
import { FlowsView, FlowView } from './views/flows.tsx';
import { ImbalanceView } from './views/imbalance.tsx';
import { JobsView, JobView } from './views/jobs.tsx';
import { LinksView, LinkView } from './views/links.tsx';
import { HostsView, HostView, SwitchView } from './views/places.tsx';
import { UnseenView } from './views/unseen.tsx';

const NAV: [view: string, text: string][] = [
    ['fabric', 'Fabric'], ['imbalance', 'Imbalance'], ['events', 'Events'], ['links', 'Links'],
    ['flows', 'Flows'], ['jobs', 'Jobs'], ['hosts', 'Hosts'], ['unseen', 'Not seen'],
];

const VIEW: Record<string, () => JSX.Element> = {
    fabric: FabricView, imbalance: ImbalanceView, events: EventsView, links: LinksView, flows: FlowsView, jobs: JobsView,
    hosts: HostsView, unseen: UnseenView, link: LinkView, flow: FlowView, job: JobView, switch: SwitchView, host: HostView,
};

/** Under which head a view of one thing stands. */
const OF: Record<string, string> = { link: 'links', flow: 'flows', job: 'jobs', switch: 'fabric', host: 'hosts' };

function cleaned(children: unknown): unknown {
    if (typeof children === 'string') return clean(children);
    return Array.isArray(children) ? children.map(cleaned) : children;
}

// Whatever comes from the network passes here on its way to the screen: text is text, and a control
// character in it is seen, not obeyed. Fragments and components hold text as elements do.
const before = options.vnode;
options.vnode = (vnode) => {
    const props = vnode.props as Record<string, unknown>;
    const children = props['children'];
    if (typeof children === 'string' || Array.isArray(children)) props['children'] = cleaned(children);
    if (typeof vnode.type === 'string')
        for (const name of ['title', 'aria-label', 'aria-valuetext'])
            if (typeof props[name] === 'string') props[name] = clean(props[name]);
    before?.(vnode);
};

function Moment(): JSX.Element {
    const { connection, trouble, window: shown, at, asked, route, keeps, windows, imbalance } = useStore();
    const past = at !== undefined && holds(shown, at);
    const now = format({ ...route, params: { ...route.params, at: '' } });
    const span = shown ? `${between(shown.window_start_ms, shown.window_end_ms)} ${zone(shown.window_end_ms)}` : '';
    if (connection === 'lost') return <span class="moment lost" role="alert">✕ {trouble}{shown ? `; shown is what was last known, ${span}` : ''}</span>;
    if (!shown) return <span class="moment">{connection === 'asking' ? 'asking …' : 'no window has closed yet'}</span>;
    if (at !== asked) return <span class="moment past">asking for {at === undefined ? 'now' : clock(at)} …</span>;
    const partial = windows?.find((w) => w.window_start_ms === shown.window_start_ms)?.partial || imbalance[0]?.partial;
    const text = `${span}${partial ? ', seen in part' : ''}`;
    const zoned = `${stamp(shown.window_start_ms)} to ${stamp(shown.window_end_ms)}`;
    if (at !== undefined)
        return <span class="moment past" title={zoned}>{past ? 'then: ' : keeps ? 'that window is not kept; now: ' : 'no history is kept; now: '}{text} <a href={now}>back to now</a></span>;
    return <span class="moment live" title={zoned}><span aria-hidden="true">●</span> live, {text}</span>;
}

async function copyView(): Promise<boolean> {
    const main = document.querySelector('main');
    if (!main) return false;
    const { fabric, window: shown, connection, trouble } = store.state;
    const head = `${clean(fabric?.name ?? 'fabrictrace')}, ${shown ? `${stamp(shown.window_start_ms)} to ${stamp(shown.window_end_ms)}` : 'no window'}${connection === 'lost' ? `, last known: ${trouble}` : ''}`;
    const route = store.state.route;
    const at = String(store.state.at ?? shown?.window_start_ms ?? '');
    const link = `${location.origin}${location.pathname}${format({ ...route, params: { ...route.params, at } })}`;
    const text = `${head}\n${toText(blocksOf(main))}${link}\n`;
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        // Over plain HTTP from elsewhere there is no clipboard: the old way.
        const area = document.createElement('textarea');
        area.value = text;
        document.body.append(area);
        area.select();
        const done = document.execCommand('copy');
        area.remove();
        return done;
    }
}

function Tools({ help }: { help: () => void }): JSX.Element {
    const [copied, setCopied] = useState('');
    const copy = () => void copyView().then((done) => {
        setCopied(done ? 'copied' : 'could not copy');
        setTimeout(() => setCopied(''), 2000);
    });
    return (
        <div class="tools" data-nocopy>
            <button type="button" id="copy" onClick={copy} title="Copy this view as text (c)">{copied || 'Copy as text'}</button>
            <button type="button" onClick={changeTheme} title="Light or dark (t)" aria-label="Light or dark">◐</button>
            <button type="button" onClick={help} title="Keys (?)" aria-label="Keys">?</button>
            {token() === undefined ? null : <button type="button" onClick={logOut} title="Forget the token">Log out</button>}
        </div>
    );
}

const KEYS: [string, string][] = [
    ['1 … 8', 'the views, from left to right'], ['/', 'search'], ['[ and ]', 'the window before and after'], ['l', 'now'],
    ['c', 'copy this view as text'], ['t', 'light or dark'], ['Tab, arrows, Enter', 'go through a drawing or matrix and open a link'],
    ['?', 'this'], ['Esc', 'close'],
];

/** Keys stay in it until it is closed, and go on from where they were. */
function Help({ close }: { close: () => void }): JSX.Element {
    const button = useRef<HTMLButtonElement>(null);
    useLayoutEffect(() => {
        const from = document.activeElement as HTMLElement | null;
        button.current?.focus();
        return () => from?.focus();
    }, []);
    return (
        <div class="help" role="dialog" aria-modal="true" aria-labelledby="keys" data-nocopy onKeyDown={(e) => { if (e.key === 'Tab') e.preventDefault(); }}>
            <h2 id="keys">Keys</h2>
            <dl class="facts">{KEYS.map(([key, what]) => <div key={key}><dt>{key}</dt><dd>{what}</dd></div>)}</dl>
            <button type="button" onClick={close} ref={button}>Close</button>
        </div>
    );
}

/** Whenever something is lost, late or silent. */
function Banner(): JSX.Element | null {
    const state = useStore();
    const { findings, events, route, fabric, window: shown } = state;
    const past = usePast();
    // What the doctor says is of now.
    const warnings = past ? [] : findings.filter((f) => f.severity !== 'info');
    const late = events.filter((e) => !e.cleared && (e.kind === 'loss' || e.kind === 'silent_exporter' || e.kind === 'clock_skew'));
    const first = warnings[0];
    if (fabric?.mute && hasLinks(state) && fabric.ways.size > 0 && shown && !first && late.length === 0)
        return (
            <aside class="banner" aria-label="Not seen">
                <span aria-hidden="true">▲</span> <strong>Nothing is seen.</strong> No sample and no counter of any switch came in this window. To do: look whether fabrictrace-switchpoll runs and reaches this daemon, and whether the switches send it sFlow.
            </aside>
        );
    if (!first && late.length === 0) return null;
    if (route.view === 'unseen') return null;
    const said = first
        ? `${first.switch ?? first.host ?? ''}${first.port ?? first.device ? ` ${first.port ?? first.device}` : ''}${first.switch || first.host ? ': ' : ''}${first.text}`
        : late[0]?.message ?? '';
    const n = warnings.length + (first ? 0 : late.length);
    return (
        <aside class="banner" aria-label="Not seen">
            <span aria-hidden="true">▲</span> <strong>Not all is seen.</strong> {said}.{first?.advice ? ` To do: ${first.advice}.` : ''}{' '}
            <A view="unseen">{n > 1 ? `and ${count(n - 1)} more` : 'all of it'}</A>
        </aside>
    );
}

function stepWindow(by: number): void {
    const { windows, at } = store.state;
    if (!windows || windows.length === 0) return;
    const found = at === undefined ? -1 : windows.findIndex((w) => w.window_end_ms > at);
    const here = found < 0 ? windows.length - 1 : found;
    const next = Math.min(windows.length - 1, Math.max(0, here + by));
    const start = windows[next]?.window_start_ms;
    changeMoment(next === windows.length - 1 || start === undefined ? '' : String(start));
}

function useKeys(setHelp: (on: boolean) => void): void {
    useEffect(() => {
        const onKey = (e: KeyboardEvent) => {
            const into = e.target as HTMLElement;
            if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(into.tagName)) return;
            const { route } = store.state;
            const view = NAV[Number(e.key) - 1];
            if (view) go(format({ view: view[0], names: [], params: route.params['at'] ? { at: route.params['at'] } : {} }));
            else if (e.key === '/') document.getElementById('search')?.focus();
            else if (e.key === '[') stepWindow(-1);
            else if (e.key === ']') stepWindow(1);
            else if (e.key === 'l') change({ at: '' });
            else if (e.key === 'c') document.getElementById('copy')?.click();
            else if (e.key === 't') changeTheme();
            else if (e.key === '?') setHelp(true);
            else if (e.key === 'Escape') setHelp(false);
            else return;
            e.preventDefault();
        };
        addEventListener('keydown', onKey);
        return () => removeEventListener('keydown', onKey);
    }, []);
}

function Page(): JSX.Element {
    const state = useStore();
    const { route, events, findings, diagnoses, fabric, connection, locked, window: shown } = state;
    const [help, setHelp] = useState(false);
    useKeys(setHelp);
    const standing = events.filter((e) => !e.cleared && e.severity !== 'info').length;
    const unseen = findings.filter((f) => f.severity !== 'info').length;
    const ill = new Set(diagnoses.filter((d) => d.severity !== 'info').map((d) => d.job ?? '')).size;
    const numbers: Record<string, number> = { events: standing, jobs: ill, unseen };
    const View = VIEW[route.view] ?? FabricView;
    const where = [route.view, ...route.names].join('/');
    useEffect(() => {
        document.title = `${standing + ill > 0 ? `(${standing + ill}) ` : ''}${clean(route.names.join(' ') || (NAV.find((n) => n[0] === route.view)?.[1] ?? ''))} · ${clean(fabric?.name ?? '')} · fabrictrace`;
    }, [where, fabric?.name, standing + ill]);
    useEffect(arrive, [where, fabric?.name]);
    // What the focus was on has gone with the view before: keys, and who listens, go on with this one.
    const shownBefore = useRef(where);
    useEffect(() => {
        if (shownBefore.current === where) return;
        shownBefore.current = where;
        if (document.activeElement === document.body) document.querySelector('main')?.focus({ preventScroll: true });
    }, [where]);
    return (
        <>
            <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.querySelector('main')?.focus(); }}>To the view</a>
            <header data-window={shown?.window_end_ms} data-connection={connection}>
                <div class="head">
                    <A view="fabric" class="brand">fabrictrace</A>
                    <span class="fabric-name">{fabric?.name ?? ''}</span>
                    {locked ? <span class="moment" /> : <Moment />}
                    {locked ? null : <Search />}
                    <Tools help={() => setHelp(true)} />
                </div>
                <nav aria-label="Views" data-nocopy>
                    {NAV.map(([view, text]) => (
                        <A key={view} view={view} current={(OF[route.view] ?? route.view) === view}>
                            {text}{numbers[view] ? <span class="number"> {count(numbers[view])}</span> : null}
                        </A>
                    ))}
                </nav>
                {locked ? null : <Scrubber />}
            </header>
            {locked ? null : <Banner />}
            <main id="main" tabIndex={-1} class={`view-${route.view}`} data-shown={where}>
                {locked ? <Lock key={locked} locked={locked} /> : waits(state) ? <Empty>Asking …</Empty> : <View key={where} />}
            </main>
            <footer data-nocopy><span>fabrictrace listens; it sends nothing into the fabric.</span> <a href="licences.txt">Licences</a></footer>
            {help ? <Help close={() => setHelp(false)} /> : null}
        </>
    );
}

const root = document.getElementById('page');
keepTheme();
keepScroll();
if (root) render(<Page />, root);
store.start();
// The way back may show a page as it was left.
addEventListener('pageshow', (e) => {
    if (e.persisted && isStale()) location.reload();
});
