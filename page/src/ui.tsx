// SPDX-License-Identifier: Apache-2.0
// The parts that views are made of.
import type { ComponentChildren, JSX } from 'preact';
import { usePast, useStore } from './hooks.ts';
import type { LinkState } from './model.ts';
import type { Flow, Hop } from './records.ts';
import { format, kept } from './route.ts';
import { store } from './store.ts';
import { flowText, hopsText, NONE } from './text.ts';

/** The address of another view at the same moment. */
export function useHref(): (view: string, names?: string[], params?: Record<string, string>) => string {
    const { route } = useStore();
    return (view, names = [], params = {}) => format({ view, names, params: { ...kept(route.params), ...params } });
}

/** The store follows at once: a key that is pressed before the browser's own event finds the new address.
 * over: in the place of the address that is left, which the way back does not stop at. */
export function go(hash: string, over = false): void {
    if (over) history.replaceState(history.state, '', hash);
    else location.hash = hash;
    store.follow();
}

/** Stays in this view, with other parameters; of the address as it is now, not as it was when the view
 * was drawn: two that follow closely both count. */
export function change(params: Record<string, string>, over = false): void {
    const { route } = store.state;
    go(format({ ...route, params: { ...route.params, ...params } }), over);
}

/** To a moment, '' for now; from moment to moment is one step of the way back, however many there were. */
export function changeMoment(at: string): void {
    change({ at }, store.state.at !== undefined && at !== '');
}

export function A(props: {
    view: string; names?: string[]; params?: Record<string, string>; children: ComponentChildren; class?: string;
    current?: boolean;
}): JSX.Element {
    const href = useHref();
    return (
        <a href={href(props.view, props.names, props.params)} class={props.class}
            aria-current={props.current ? 'page' : undefined}>
            {props.children}
        </a>
    );
}

/** Stays in this view, with other parameters. */
export function Stay(props: { params: Record<string, string>; children: ComponentChildren; current: boolean; class?: string }): JSX.Element {
    const { route } = useStore();
    return <a href={format({ ...route, params: { ...route.params, ...props.params } })} class={props.class} aria-current={props.current ? 'true' : undefined}>{props.children}</a>;
}

export function SwitchLink({ name }: { name: string }): JSX.Element {
    return <A view="switch" names={[name]} class="name">{name}</A>;
}

export function HostLink({ name }: { name: string | undefined }): JSX.Element {
    return name ? <A view="host" names={[name]} class="name">{name}</A> : <span class="none">{NONE}</span>;
}

export function PortLink({ sw, port, short }: { sw: string; port: string; short?: boolean }): JSX.Element {
    return <A view="link" names={[sw, port]} class="name">{short ? port : `${sw} ${port}`}</A>;
}

export function FlowLink({ flow }: { flow: Flow }): JSX.Element {
    return <A view="flow" names={[flowText(flow)]} class="tuple">{flowText(flow)}</A>;
}

export function JobLink({ job }: { job: string | undefined }): JSX.Element {
    return job ? <A view="job" names={[job]} class="name">{job}</A> : <span class="none">{NONE}</span>;
}

export function GroupLink({ name, scope = 'group' }: { name: string; scope?: string | undefined }): JSX.Element {
    return <A view="imbalance" names={[scope, name]} class="name">{name}</A>;
}

/** A path in a line, every switch and port of it a link. */
export function Hops({ hops }: { hops: Hop[] | undefined }): JSX.Element {
    if (!hops || hops.length === 0) return <span class="none">{hopsText(hops)}</span>;
    return (
        <span class="hops">
            {hops.map((h, i) => (
                <>
                    {i > 0 ? ' › ' : ''}
                    {h.switch ? <SwitchLink name={h.switch} /> : '?'}
                    {h.switch && h.out ? <> <PortLink sw={h.switch} port={h.out} short /></> : h.out_lag ? ` ${h.out_lag}` : ''}
                </>
            ))}
        </span>
    );
}

const STATE_MARKS: Record<LinkState, string> = { used: '●', idle: '○', down: '✕', shut: '⊘', unseen: '?' };

export function StateMark({ state }: { state: LinkState }): JSX.Element {
    return (
        <span class={`state state-${state}`}>
            <span aria-hidden="true" data-nocopy>{STATE_MARKS[state]}</span> {state}
        </span>
    );
}

const WORD_MARKS: Record<string, string> = {
    critical: '■', warning: '▲', info: '·', fault: '■', uneven: '▲', even: '●', idle: '○',
    resolved: '●', partial: '◐', multipath: '⑂', unresolved: '○', cleared: '✓',
};

/** A word that means good or bad, with a mark of its own beside the colour. */
export function Word({ word, text }: { word: string | undefined; text?: string }): JSX.Element {
    const name = word ?? 'unknown';
    return (
        <span class={`word word-${name}`}>
            <span aria-hidden="true" data-nocopy>{WORD_MARKS[name] ?? '·'}</span> {text ?? name}
        </span>
    );
}

/** How full, as a bar beside its figure. */
export function Bar({ part, children }: { part: number | undefined; children: ComponentChildren }): JSX.Element {
    return (
        <span class="bar">
            <span class="bar-track" aria-hidden="true">
                <span class="bar-fill" style={{ width: `${Math.min(100, Math.max(0, (part ?? 0) * 100))}%` }} />
            </span>
            <span class="bar-text">{children}</span>
        </span>
    );
}

export type Fact = [string, ComponentChildren];

/** What is known; what is not is left out. */
export function Facts({ of }: { of: (Fact | false | undefined)[] }): JSX.Element {
    return (
        <dl class="facts">
            {of.map((fact) => fact ? <div key={fact[0]}><dt>{fact[0]}</dt><dd>{fact[1]}</dd></div> : null)}
        </dl>
    );
}

export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
    return <p class="empty">{children}</p>;
}

/** Said where a moment before is looked at, and this is not of it. */
export function OfNow({ what }: { what: string }): JSX.Element | null {
    return usePast() ? <p class="note">{what} of now, not of then.</p> : null;
}

/** Before the first answer nothing is said of events, figures or what is missing: that there are none least of all. */
export function NotYet(): JSX.Element {
    const { connection } = useStore();
    return <Empty>{connection === 'lost' ? 'Not known: the daemon has not answered.' : 'Asking …'}</Empty>;
}

export function Section({ title, children, id, aside }: {
    title: string; children: ComponentChildren; id?: string; aside?: ComponentChildren;
}): JSX.Element {
    const name = id ?? title.toLowerCase().replace(/[^a-z]+/g, '-');
    return (
        <section aria-labelledby={name} class="section">
            <div class="section-head"><h2 id={name}>{title}</h2>{aside}</div>
            {children}
        </section>
    );
}
