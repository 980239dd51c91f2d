// SPDX-License-Identifier: Apache-2.0
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { meaning } from '../advice.ts';
import { useAnswer, useOver, usePast, useStore } from '../hooks.ts';
import { byWorst, slowdown } from '../model.ts';
import { OVER_MS } from '../over.ts';
import type { Answer, Event, Victim } from '../records.ts';
import { format } from '../route.ts';
import { age, clock, count, flowText, plural, probability, rate, ratio, tenth, words } from '../text.ts';
import { Table } from '../table.tsx';
import { A, Empty, Facts, FlowLink, GroupLink, Hops, HostLink, JobLink, NotYet, PortLink, Section, SwitchLink, Word, type Fact } from '../ui.tsx';

/** An event's own place in the list. */
function eventId(e: Event): string {
    return `${e.kind}/${e.subject}`;
}

function Subject({ event }: { event: Event }): JSX.Element {
    const at = event.evidence;
    if (at?.switch && at.port) return <PortLink sw={at.switch} port={at.port} />;
    if (at?.flow) return <FlowLink flow={at.flow} />;
    if (event.kind === 'polarization' && at?.group) return <GroupLink name={at.group} />;
    if (at?.switch) return <SwitchLink name={at.switch} />;
    if (at?.host) return <HostLink name={at.host} />;
    if (at?.group) return <GroupLink name={at.group} />;
    return <span class="name">{event.subject}</span>;
}

/** One line of a list: what, where, since when. */
export function EventLine({ event }: { event: Event }): JSX.Element {
    const { window: shown } = useStore();
    const since = event.since_ms ?? event.time_ms;
    return (
        <>
            <Word word={event.cleared ? 'cleared' : event.severity} text={meaning(event.kind).name} /> <Subject event={event} />{' '}
            <span class="said">{event.message}</span>{' '}
            {since === undefined ? null : <span class="since">since <A view="events" names={[event.kind, event.subject]}>{clock(since)}</A>, {age((shown?.window_end_ms ?? Date.now()) - since)}</span>}
        </>
    );
}

function Victims({ victims, id }: { victims: Victim[]; id: string }): JSX.Element {
    return (
        <Table id={id} label="Flows that wait for each other" plain rows={victims} rowKey={(v) => flowText(v.flow)} columns={[
            { key: 'flow', title: 'Flow', cell: (v) => <FlowLink flow={v.flow} /> },
            { key: 'rate', title: 'Rate', num: true, cell: (v) => rate(v.rate_bps), by: (v) => v.rate_bps, unit: 'b/s' },
            { key: 'from', title: 'From', minor: true, cell: (v) => <HostLink name={v.src_host} /> },
            { key: 'to', title: 'To', minor: true, cell: (v) => <HostLink name={v.dst_host} /> },
            { key: 'job', title: 'Job', cell: (v) => <JobLink job={v.job} /> },
            { key: 'ranks', title: 'Ranks', cell: (v) => v.src_rank === undefined && v.dst_rank === undefined ? '' : `${v.src_rank ?? '?'} › ${v.dst_rank ?? '?'}` },
        ]} />
    );
}

/** What the way of a flow over the link is known by. */
function known(v: Victim): string {
    return v.link_evidence === 'sampled' ? 'samples there' : v.link_evidence === 'neighbour' ? 'samples beside it' : '';
}

/** Flows that cross a link which loses packets and show it themselves. */
function Lossy({ victims, id }: { victims: Victim[]; id: string }): JSX.Element {
    return (
        <Table id={id} label="Flows that lose packets there" plain rows={victims} rowKey={(v) => flowText(v.flow)} columns={[
            { key: 'flow', title: 'Flow', cell: (v) => <FlowLink flow={v.flow} /> },
            { key: 'from', title: 'From', cell: (v) => <HostLink name={v.src_host} /> },
            { key: 'to', title: 'To', cell: (v) => <HostLink name={v.dst_host} /> },
            { key: 'job', title: 'Job', cell: (v) => <JobLink job={v.job} /> },
            { key: 'ranks', title: 'Ranks', minor: true, cell: (v) => v.src_rank === undefined && v.dst_rank === undefined ? '' : `${v.src_rank ?? '?'} › ${v.dst_rank ?? '?'}` },
            { key: 'again', title: 'Sent again', num: true, cell: (v) => v.resending_windows === undefined ? '' : `${count(v.resending_windows)} of ${plural(v.numbered_windows ?? 0, 'window')}`, by: (v) => v.resending_windows, unit: 'windows' },
            { key: 'naks', title: 'NAKs', num: true, minor: true, cell: (v) => v.nak_windows === undefined ? '' : `in ${plural(v.nak_windows, 'window')}`, by: (v) => v.nak_windows, unit: 'windows' },
            { key: 'known', title: 'Crosses it by', minor: true, cell: known },
        ]} />
    );
}

function evidenceFacts(e: Event): (Fact | false | undefined)[] {
    const at = e.evidence ?? {};
    const slow = slowdown(e);
    return [
        at.switch !== undefined && at.port !== undefined && ['Link', <><PortLink sw={at.switch} port={at.port} />{at.peer ? <> to <SwitchLink name={at.peer} /> {at.peer_port}</> : ''}</>],
        at.switch !== undefined && at.port === undefined && ['Switch', <SwitchLink name={at.switch} />],
        at.group !== undefined && ['Group', <GroupLink name={at.group} />],
        at.elephants !== undefined && ['Elephants', `${count(at.elephants)} here, ${count(at.elephants_least)} on the sibling with the fewest, ${tenth(at.elephants_even)} would be even`],
        slow !== undefined && slow > 1 && ['Cost', `what waits for these flows takes at most ${ratio(slow)} times as long as on an even group`],
        at.fim !== undefined && ['FIM', `${tenth(at.fim)} %, chance gives ${tenth(at.fim_expected)} %, p ${probability(at.p_value)}`],
        at.found_peer !== undefined && ['Leads to', <><SwitchLink name={at.found_peer} /> {at.found_peer_port ?? ''}: {plural(at.flows ?? 0, 'flow')}, {plural(at.count ?? 0, 'sample')}</>],
        at.old_hops !== undefined && ['Was', <Hops hops={at.old_hops} />],
        at.new_hops !== undefined && ['Is', <Hops hops={at.new_hops} />],
        at.flow !== undefined && ['Flow', <FlowLink flow={at.flow} />],
        at.host !== undefined && ['Host', <HostLink name={at.host} />],
        at.program !== undefined && ['Program', `${at.program}${at.source ? ` ‘${at.source}’` : ''}`],
        at.reason !== undefined && ['Reason', words(at.reason)],
        e.kind === 'underused' && at.count !== undefined && ['Took it', `${count(at.flows ?? 0)} of the last ${count(at.count)} new flows that had the choice`],
        (at.idle_ports ?? []).length > 0 && ['Without any flow', at.idle_ports?.join(', ')],
        (at.never_chosen ?? []).length > 0 && ['Never chosen by its hash', at.never_chosen?.join(', ')],
        at.idle_since_ms !== undefined && ['Last sample', clock(at.idle_since_ms)],
        e.kind === 'packet_loss' && at.flows !== undefined && ['Flows that show it', `${count(at.flows)} of ${count(at.count ?? 0)} that cross it${at.pairs === undefined ? '' : `, between ${plural(at.pairs, 'pair')} of hosts`}; ${plural((at.victims ?? []).length, 'flow')} named below; by chance ${probability(at.p_value)}`],
        at.found_peer === undefined && e.kind !== 'underused' && e.kind !== 'packet_loss' && at.count !== undefined && ['Count', count(at.count)],
        at.offset_ms !== undefined && ['Clock', `${Math.abs(at.offset_ms) < 60_000 ? `${tenth(Math.abs(at.offset_ms) / 1000)} s` : age(Math.abs(at.offset_ms))} ${at.offset_ms < 0 ? 'behind' : 'ahead'}`],
    ];
}

/** The whole of it: cause, evidence, who waits, what to do. */
export function EventCard({ event, open }: { event: Event; open: boolean }): JSX.Element {
    const { window: shown } = useStore();
    const what = meaning(event.kind);
    const since = event.since_ms ?? event.time_ms;
    const now = shown?.window_end_ms ?? Date.now();
    const victims = event.evidence?.victims ?? [];
    const jobs = [...new Set(victims.map((v) => v.job).filter((j) => j !== undefined))];
    return (
        <article class={`card card-${event.cleared ? 'cleared' : event.severity ?? 'info'}`} id={eventId(event)}>
            <h3>
                <Word word={event.cleared ? 'cleared' : event.severity} text={what.name} /> <Subject event={event} />
                {since === undefined ? null : <span class="since"> since {clock(since)}{event.cleared ? `, over ${clock(event.time_ms)}` : `, ${age(now - since)}`}</span>}
            </h3>
            {event.message ? <p>{event.message}</p> : null}
            {jobs.length > 0 ? <p>{event.kind === 'packet_loss' ? 'Hurt' : 'Waiting'}: {jobs.map((j, i) => <>{i ? ', ' : ''}job <JobLink job={j} /></>)}</p> : null}
            <details open={open}>
                <summary>Cause, evidence, what to do</summary>
                <Facts of={[what.cause !== '' && ['Cause', what.cause], ...evidenceFacts(event), what.advice !== '' && ['To do', what.advice]]} />
                {victims.length === 0 ? null : event.kind === 'packet_loss'
                    ? <Lossy victims={victims} id={`v-${event.subject}`} />
                    : <Victims victims={victims} id={`v-${event.subject}`} />}
            </details>
        </article>
    );
}

export function EventsView(): JSX.Element {
    const { events, route, window: shown, keeps, fabric, at } = useStore();
    const past = usePast();
    const over = route.params['over'] === '1';
    const to = shown?.window_end_ms;
    const wanted = over && keeps === true && to !== undefined;
    const then = useAnswer<Answer<Event>>(wanted && past ? 'events' : '', { from_ms: (to ?? 0) - OVER_MS, to_ms: to });
    const now = useOver(wanted && !past);
    const refusal = past ? then.refusal : now.refusal;
    const found = past ? then.answer?.records : now.events;
    // The last answer stays until that of the next window is there.
    const last = useRef<{ at: number | undefined; events: Event[] } | undefined>(undefined);
    if (found) last.current = { at, events: found };
    if (!over || last.current?.at !== at) last.current = undefined;
    const [kind, ...rest] = route.names;
    const subject = rest.join('/');
    const all = (last.current?.events ?? events).slice();
    const kinds = [...new Set(all.map((e) => e.kind))].sort();
    const rows = all.filter((e) => (!kind || e.kind === kind) && (!subject || e.subject === subject)).sort(byWorst);
    return (
        <>
            <h1>{kind ? meaning(kind).name : 'Collisions and events'}{subject ? ` ${subject}` : ''}</h1>
            <div class="filters" data-nocopy>
                <span class="choice" role="group" aria-label="Kind">
                    <A view="events" params={over ? { over: '1' } : {}} current={!kind}>All</A>
                    {kinds.map((k) => <A key={k} view="events" names={[k]} params={over ? { over: '1' } : {}} current={kind === k}>{meaning(k).name}</A>)}
                </span>
                {keeps
                    ? <a href={format({ ...route, params: { ...route.params, over: over ? '' : '1' } })} class="toggle" aria-current={over ? 'true' : undefined}>with what is over, {past ? 'the hour before' : 'last hour'}</a>
                    : null}
            </div>
            {over && keeps && refusal ? <Empty>What is over: {refusal}</Empty> : null}
            {!fabric && rows.length === 0 ? <NotYet /> : null}
            {fabric && rows.length === 0 ? <Empty>{kind ? 'No such event is active.' : 'No active event: no collision, no fault, no link down.'}</Empty> : null}
            <div class="cards">{rows.slice(0, 100).map((e, i) => <EventCard key={`${eventId(e)}/${e.since_ms}`} event={e} open={i < 3 || subject !== ''} />)}</div>
            {rows.length > 100 ? <p class="empty">{rows.length - 100} more of less weight are not shown; choose a kind.</p> : null}
        </>
    );
}

/** That are shown of a thing. */
const BESIDE = 20;

/** Those that name something. */
export function EventsOf({ test, none }: { test: (e: Event) => boolean; none: string }): JSX.Element {
    const { events, fabric } = useStore();
    const found = events.filter(test).sort(byWorst);
    return (
        <Section title="Events">
            {found.length > 0 ? null : fabric ? <Empty>{none}</Empty> : <NotYet />}
            <div class="cards">{found.slice(0, BESIDE).map((e, i) => <EventCard key={eventId(e)} event={e} open={i === 0} />)}</div>
            {found.length > BESIDE ? <p class="empty">{count(found.length - BESIDE)} more of less weight are not shown here: <A view="events">all events</A></p> : null}
        </Section>
    );
}
