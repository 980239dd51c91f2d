// SPDX-License-Identifier: Apache-2.0
import type { JSX } from 'preact';
import { Chart } from '../chart.tsx';
import { useAnswer, useHistory, usePast, useStore } from '../hooks.ts';
import { byName, portKey, type LinkState, type Way } from '../model.ts';
import type { Answer, Finding, Link, Path } from '../records.ts';
import { bytes, count, nanoseconds, NONE, percent, plural, rate, ratio } from '../text.ts';
import { lay } from '../timeline.ts';
import { Table } from '../table.tsx';
import { A, Bar, Empty, Facts, GroupLink, NotYet, OfNow, PortLink, Section, StateMark, Stay, SwitchLink } from '../ui.tsx';
import { EventsOf } from './events.tsx';
import { FlowsTable, PATHS } from './flows.tsx';

interface Row {
    link: Link | undefined;
    way: Way | undefined;
    key: string;
    switch: string;
    port: string;
    peer: string;
    state: LinkState;
    use: number | undefined;
}

function rowOf(link: Link | undefined, way: Way | undefined): Row {
    const sw = link?.switch ?? way?.switch ?? '';
    const port = link?.port ?? way?.port ?? '';
    const use = way?.use ?? link?.utilization;
    const carried = (link?.flows ?? 0) > 0 || (link?.bytes ?? 0) > 0 || (use ?? 0) > 0;
    return {
        link, way, key: portKey(sw, port), switch: sw, port, peer: link?.peer ?? way?.peer ?? '',
        state: way?.state ?? (carried ? 'used' : 'idle'), use,
    };
}

function Rows({ id, rows, tools }: { id: string; rows: Row[]; tools?: JSX.Element }): JSX.Element {
    return (
        <Table id={id} label="Links" rows={rows} rowKey={(r) => r.key} sort="-use" find="switch, port, group" none="No link is in this state." {...(tools ? { tools } : {})} columns={[
            { key: 'link', title: 'Link', cell: (r) => <PortLink sw={r.switch} port={r.port} />, by: (r) => r.key },
            { key: 'peer', title: 'To', cell: (r) => r.way ? <SwitchLink name={r.peer} /> : r.peer, by: (r) => r.peer },
            { key: 'state', title: 'State', cell: (r) => <StateMark state={r.state} />, by: (r) => r.state },
            { key: 'use', title: 'Used', num: true, cell: (r) => <Bar part={r.use}>{percent(r.use)}</Bar>, by: (r) => r.use, unit: 'share' },
            { key: 'speed', title: 'Speed', num: true, minor: true, cell: (r) => rate(r.way?.speed ?? r.link?.speed_bps), by: (r) => r.way?.speed ?? r.link?.speed_bps, unit: 'b/s' },
            { key: 'flows', title: 'Flows', num: true, minor: true, cell: (r) => count(r.link?.flows), by: (r) => r.link?.flows },
            { key: 'times', title: '× even', num: true, cell: (r) => ratio(r.way?.times), by: (r) => r.way?.times },
            { key: 'ce', title: 'CE marked', num: true, minor: true, cell: (r) => percent(r.link?.ce_marked_share), by: (r) => r.link?.ce_marked_share, unit: 'share' },
            { key: 'drops', title: 'Discards', num: true, minor: true, cell: (r) => count(r.link?.discards), by: (r) => r.link?.discards },
            { key: 'errors', title: 'Errors', num: true, minor: true, cell: (r) => count(r.link?.errors), by: (r) => r.link?.errors },
            { key: 'flaps', title: 'Flaps', num: true, minor: true, cell: (r) => count(r.link?.flaps), by: (r) => r.link?.flaps },
            { key: 'again', title: 'Send again', num: true, minor: true, unit: 'flows', cell: (r) => r.link?.resending_flows === undefined ? NONE : `${count(r.link.resending_flows)} of ${count(r.link.numbered_flows)}`, by: (r) => r.link?.resending_flows },
            { key: 'group', title: 'Group', minor: true, cell: (r) => r.link?.group ?? r.way?.group ? <GroupLink name={r.link?.group ?? r.way?.group ?? ''} /> : '', by: (r) => r.link?.group ?? r.way?.group },
        ]} />
    );
}

/** Of link records alone. */
export function LinksTable({ id, links }: { id: string; links: Link[] }): JSX.Element {
    const { fabric } = useStore();
    return <Rows id={id} rows={links.map((l) => rowOf(l, fabric?.ways.get(portKey(l.switch, l.port))))} />;
}

const STATES: LinkState[] = ['used', 'idle', 'down', 'shut', 'unseen'];

export function LinksView(): JSX.Element {
    const { links, fabric, route } = useStore();
    const state = route.params['state'];
    if (!links || !fabric) return <><h1>Links</h1><NotYet /></>;
    const known = new Set(links.map((l) => portKey(l.switch, l.port)));
    const rows = [
        ...links.map((l) => rowOf(l, fabric.ways.get(portKey(l.switch, l.port)))),
        ...[...fabric.ways.values()].filter((w) => !known.has(w.key)).map((w) => rowOf(undefined, w)),
    ];
    const shown = state ? rows.filter((r) => r.state === state) : rows;
    return (
        <>
            <h1>Links</h1>
            <Rows id="links" rows={shown} tools={
                <span class="choice" role="group" aria-label="State">
                    <Stay params={{ state: '' }} current={!state}>All {count(rows.length)}</Stay>
                    {STATES.map((s) => {
                        const n = rows.filter((r) => r.state === s).length;
                        return <Stay key={s} params={{ state: s }} current={state === s}>{s} <span class={n > 0 && s !== 'used' && s !== 'idle' ? `state-${s}` : ''}>{count(n)}</span></Stay>;
                    })}
                </span>
            } />
        </>
    );
}

function crosses(path: Path, sw: string, port: string): boolean {
    const at = (hops: Path['hops']) => (hops ?? []).some((h) => h.switch === sw && h.out === port);
    return at(path.hops) || (path.shares ?? []).some((s) => at(s.hops));
}

/** What is drawn of a link over time. */
function LinkHistory({ sw, port }: { sw: string; port: string }): JSX.Element {
    const { keeps } = useStore();
    const asked = useHistory<Link>('link', portKey(sw, port));
    if (keeps === false) return <Empty>This daemon keeps no history.</Empty>;
    const records = asked.records ?? [];
    if (records.length === 0) return <Empty>{asked.refusal || (asked.records ? 'No earlier window is kept.' : 'Asking …')}</Empty>;
    const { times, values } = lay(records, [(r) => (r.utilization === undefined ? undefined : r.utilization * 100)]);
    return (
        <Chart times={times} marks={[]} unit="%" height={170} label={`Use of ${sw} ${port} over ${plural(records.length, 'window')}`}
            series={[{ label: 'used', values: values[0] ?? [], colour: '--accent', width: 2 }]} />
    );
}

export function findingsAt(findings: Finding[], sw: string, port?: string): Finding[] {
    return findings.filter((f) => f.switch === sw && (port === undefined || f.port === port));
}

export function Findings({ of }: { of: Finding[] }): JSX.Element | null {
    const past = usePast();
    if (of.length === 0) return null;
    return (
        <ul class="findings">
            {past ? <li>The doctor says now, not then:</li> : null}
            {of.map((f) => <li key={`${f.switch}/${f.port}/${f.text}`}><strong>{f.port ?? f.device ?? ''}</strong> {f.text}{f.advice ? <span class="advice"> — {f.advice}</span> : ''}</li>)}
        </ul>
    );
}

/** The daemon counts no more (fabrictrace-records(7)). */
const FLAPS_MAX = 16;

function LinkFacts({ way, link }: { way: Way | undefined; link: Link | undefined }): JSX.Element {
    const group = link?.group ?? way?.group;
    const peer = link?.peer ?? way?.peer;
    const peerPort = link?.peer_port ?? way?.peerPort;
    return (
        <Facts of={[
            way !== undefined && ['State', <StateMark state={way.state} />],
            way !== undefined && ['From', <SwitchLink name={way.switch} />],
            peer !== undefined && ['Leads to', way ? <><SwitchLink name={peer} /> {peerPort ? <PortLink sw={peer} port={peerPort} short /> : ''}</> : `${peer} ${peerPort ?? ''}`],
            (way?.speed ?? link?.speed_bps) !== undefined && ['Speed', rate(way?.speed ?? link?.speed_bps)],
            (way?.use ?? link?.utilization) !== undefined && ['Used', <Bar part={way?.use ?? link?.utilization}>{percent(way?.use ?? link?.utilization)}</Bar>],
            group !== undefined && ['Group', <><GroupLink name={group} />{link?.share === undefined ? '' : `, carries ${percent(link.share)} of its bytes`}{way?.times === undefined ? '' : `, ${ratio(way.times)} × the even share`}</>],
            link?.flows !== undefined && ['Flows', count(link.flows)],
            link?.bytes !== undefined && ['Bytes', `${bytes(link.bytes)} in the window, by flows`],
            link?.counter_bytes !== undefined && ['Counted', `${bytes(link.counter_bytes)} by the port`],
            link?.unexplained_bytes !== undefined && ['Unexplained', link.unexplained_bytes < 0
                ? `${bytes(-link.unexplained_bytes)}: of flows, but not counted` : `${bytes(link.unexplained_bytes)}: counted, but of no flow that was seen`],
            link?.ce_marked_share !== undefined && ['CE marked', `${percent(link.ce_marked_share)} of the packets sampled`],
            link?.discards !== undefined && ['Discards', count(link.discards)],
            link?.errors !== undefined && ['Errors', count(link.errors)],
            link?.flaps !== undefined && ['Flaps', `${link.flaps >= FLAPS_MAX ? 'at least ' : ''}${count(link.flaps)} in the last hour`],
            link?.resending_flows !== undefined && ['Sent again', `${count(link.resending_flows)} of ${plural(link.numbered_flows ?? 0, 'flow')} whose packet numbers show it`],
            link?.pfc_in !== undefined && ['PFC', `${count(link.pfc_in)} received, ${count(link.pfc_out)} sent`],
            link?.pause_in !== undefined && ['PAUSE', `${count(link.pause_in)} received, ${count(link.pause_out)} sent`],
            link?.queue_max_bytes !== undefined && ['Deepest queue', bytes(link.queue_max_bytes)],
            link?.transit_max_ns !== undefined && ['Longest transit', nanoseconds(link.transit_max_ns)],
        ]} />
    );
}

export function LinkView(): JSX.Element {
    const { route, fabric, links, findings } = useStore();
    const [sw = '', ...rest] = route.names;
    const port = rest.join('/');
    const key = portKey(sw, port);
    const way = fabric?.ways.get(key);
    const link = way?.link ?? links?.find((l) => l.switch === sw && l.port === port);
    const asked = useAnswer<Answer<Path>>('paths', { switch: sw, port, limit: PATHS });
    const through = asked.answer?.records ?? [];
    const flows = through.filter((p) => crosses(p, sw, port));
    const cut = (asked.answer?.total ?? 0) > through.length;
    const back = way ? fabric?.ways.get(portKey(way.peer, way.peerPort)) : undefined;
    const group = link?.group ?? way?.group;
    const siblings = group ? (links ?? []).filter((l) => l.group === group).sort((a, b) => byName(a.port, b.port)) : [];
    if (fabric && !way && !link)
        return <><h1>Link {sw} {port}</h1><Empty>No such link is known. <A view="links">All links</A></Empty></>;
    return (
        <>
            <h1>Link {sw} {port}</h1>
            <LinkFacts way={way} link={link} />
            <Findings of={findingsAt(findings, sw, port)} />
            {back ? <p>The other direction: <PortLink sw={back.switch} port={back.port} />, {back.state === 'used' ? `${percent(back.use)} used` : <StateMark state={back.state} />}</p> : null}
            <EventsOf test={(e) => e.evidence?.switch === sw && e.evidence.port === port} none="No active event on this link." />
            <Section title="Flows on it">
                <OfNow what="Flows are those" />
                {flows.length === 0
                    ? <Empty>{asked.refusal || (asked.answer ? 'No flow is known to cross it.' : 'Asking …')}</Empty>
                    : <FlowsTable id="link-flows" paths={flows} />}
                {cut ? <p class="note">By this port, either way, go {count(asked.answer?.total)} flows. Of the {count(through.length)} fastest, these leave by it.</p> : null}
            </Section>
            <Section title="Over time"><LinkHistory sw={sw} port={port} /></Section>
            {siblings.length > 1 ? <Section title={`Siblings in ${group}`} id="siblings"><LinksTable id="siblings" links={siblings} /></Section> : null}
        </>
    );
}
