// SPDX-License-Identifier: Apache-2.0
import type { JSX } from 'preact';
import { useAnswer, useHistory, useStore } from '../hooks.ts';
import type { Answer, Explanation, Hop, Link, Path } from '../records.ts';
import { bytes, clock, count, flowKey, flowText, hopsText, percent, rate, whyNot, words } from '../text.ts';
import { Table } from '../table.tsx';
import { Bar, change, Empty, Facts, FlowLink, Hops, HostLink, JobLink, OfNow, PortLink, Section, Stay, SwitchLink, Word } from '../ui.tsx';
import { EventCard, EventsOf } from './events.tsx';
import { ProbeOf } from './probes.tsx';

/** More rows than a person reads, fewer than a browser minds. */
export const PATHS = 2000;

const WEAKER: Record<string, string> = {
    predicted: "predicted: by the switch's hash, as learnt; no samples here",
    oracle: 'oracle: the switch answers that it would; no samples here',
    probed: 'probed: a packet of this 5-tuple was answered; no samples here',
    inferred: 'inferred: from counters of uplinks and what hosts sent; no samples here',
};

function seenBy(h: Hop): string {
    const samples = h.samples ?? 0;
    const way = h.out_lag ? 'aggregate' : 'port';
    if (samples === 0 && h.accuracy !== undefined) return `predicted: by the switch's hash, as learnt, which was right for ${percent(h.accuracy)} of other flows`;
    if (samples === 0) return WEAKER[h.evidence ?? ''] ?? (h.out ?? h.out_lag ? 'no samples here; known from its neighbours' : 'no samples here; its way out is not known');
    const n = `${count(samples)} sample${samples === 1 ? '' : 's'}`;
    if (h.share === undefined || h.share >= 1) return `${n}, all by this ${way}`;
    return `${n}, ${percent(h.share)} by this ${way} (at least ${percent(h.share_lo)})`;
}

export function FlowsTable({ id, paths, total }: { id: string; paths: Path[]; total?: number | undefined }): JSX.Element {
    return (
        <Table id={id} label="Flows" rows={paths} rowKey={(p) => flowKey(p.flow)} sort="-rate" total={total} which="the fastest" find="address, host, job, path" columns={[
            { key: 'flow', title: 'Flow', cell: (p) => <FlowLink flow={p.flow} />, by: (p) => flowText(p.flow) },
            { key: 'rate', title: 'Rate', num: true, cell: (p) => rate(p.rate_bps), by: (p) => p.rate_bps, unit: 'b/s' },
            { key: 'role', title: 'Role', minor: true, cell: (p) => p.role, by: (p) => p.role },
            { key: 'state', title: 'State', cell: (p) => <Word word={p.state} />, by: (p) => p.state },
            { key: 'from', title: 'From', minor: true, cell: (p) => <HostLink name={p.src_host} />, by: (p) => p.src_host },
            { key: 'to', title: 'To', minor: true, cell: (p) => <HostLink name={p.dst_host} />, by: (p) => p.dst_host },
            { key: 'job', title: 'Job', cell: (p) => <JobLink job={p.job} />, by: (p) => p.job },
            { key: 'path', title: 'Path', minor: true, cell: (p) => p.state === 'multipath' ? `${count(p.shares?.length)} paths` : <Hops hops={p.hops} />, by: (p) => hopsText(p.hops) },
        ]} />
    );
}

const STATES = ['resolved', 'partial', 'multipath', 'unresolved'];

export function FlowsView(): JSX.Element {
    const { route } = useStore();
    const state = route.params['state'] ?? '';
    const host = route.params['host'] ?? '';
    const asked = useAnswer<Answer<Path>>('paths', { state, host, limit: PATHS });
    const paths = asked.answer?.records ?? [];
    const put = (key: string, value: string) => change({ [key]: value });
    return (
        <>
            <h1>Flows</h1>
            <p class="lead">{asked.answer ? `${count(asked.answer.total ?? paths.length)} ${state || 'in all'}${host ? ` at ${host}` : ''}; rates and paths as they are now.` : 'Asking …'}</p>
            <OfNow what="These flows are those" />
            <div class="filters" data-nocopy>
                <span class="choice" role="group" aria-label="State">
                    <Stay params={{ state: '' }} current={!state}>All</Stay>
                    {STATES.map((s) => <Stay key={s} params={{ state: s }} current={state === s}>{s}</Stay>)}
                </span>
                <form onSubmit={(e) => {
                    e.preventDefault();
                    put('host', String(new FormData(e.currentTarget as HTMLFormElement).get('host') ?? '').trim());
                }}>
                    <label>Host or address <input name="host" defaultValue={host} key={host} autocomplete="off" spellcheck={false} /></label>
                </form>
            </div>
            {asked.refusal ? <Empty>{asked.refusal}</Empty> : null}
            {asked.answer && paths.length === 0 ? <Empty>No such flow is known.</Empty> : null}
            {paths.length > 0 ? <FlowsTable id="flows" paths={paths} total={asked.answer?.total} /> : null}
        </>
    );
}

interface HopRow {
    hop: Hop;
    link: Link | undefined;
    nth: number;
}

function HopsTable({ id, hops, links }: { id: string; hops: Hop[]; links: Link[] }): JSX.Element {
    const rows: HopRow[] = hops.map((hop, nth) => ({ hop, nth, link: links.find((l) => l.switch === hop.switch && l.port === hop.out) }));
    return (
        <Table id={id} label="Path, hop by hop" plain rows={rows} rowKey={(r) => String(r.nth)} columns={[
            { key: 'n', title: 'Hop', num: true, cell: (r) => r.nth + 1 },
            { key: 'switch', title: 'Switch', cell: (r) => r.hop.switch ? <SwitchLink name={r.hop.switch} /> : '?' },
            { key: 'in', title: 'In', cell: (r) => r.hop.in ?? r.hop.in_lag ?? '?' },
            { key: 'out', title: 'Out', cell: (r) => r.hop.switch && r.hop.out ? <PortLink sw={r.hop.switch} port={r.hop.out} short /> : r.hop.out_lag ?? '?' },
            { key: 'proof', title: 'Proof', cell: (r) => seenBy(r.hop) },
            { key: 'use', title: 'Link used', num: true, cell: (r) => r.link?.utilization === undefined ? '' : <Bar part={r.link.utilization}>{percent(r.link.utilization)}</Bar> },
            { key: 'flows', title: 'Flows', num: true, minor: true, cell: (r) => r.link === undefined ? '' : count(r.link.flows) },
        ]} />
    );
}

function FlowFacts({ p }: { p: Path }): JSX.Element {
    const end = (host: string | undefined, rank: number | undefined) => (
        <><HostLink name={host} />{rank === undefined ? '' : ` rank ${rank}`}</>
    );
    const source = p.rate_source === 'host' ? 'counted by the host' : p.rate_source === 'sflow' ? 'from sFlow' : p.rate_source === 'psn' ? 'by packet numbers' : '';
    return (
        <Facts of={[
            ['State', <><Word word={p.state} />{p.reason ? `: ${whyNot(p)}` : ''}{p.state === 'partial' && p.candidates ? `; ${p.candidates === 1 ? 'one path is left' : `one of ${count(p.candidates)} paths`}` : ''}</>],
            (p.src_host !== undefined || p.dst_host !== undefined) && ['Hosts', <>{end(p.src_host, p.src_rank)} to {end(p.dst_host, p.dst_rank)}</>],
            p.rate_bps !== undefined && ['Rate', `${rate(p.rate_bps)}${p.rate_lo_bps !== undefined && p.rate_hi_bps !== undefined && p.rate_lo_bps !== p.rate_hi_bps ? ` (${rate(p.rate_lo_bps)} to ${rate(p.rate_hi_bps)})` : ''}${source ? `, ${source}` : ''}`],
            p.bytes !== undefined && ['Bytes', `${bytes(p.bytes)} in the window`],
            p.messages !== undefined && p.messages > 0 && p.bytes !== undefined && ['Messages', `${count(p.messages)} in the window, about ${bytes(p.bytes / p.messages)} each`],
            p.psn_back_samples !== undefined && p.psn_back_samples > 0 && ['Sent again or overtaken', `${count(p.psn_back_samples)} of ${count(p.numbered_samples)} samples`],
            (p.nak_samples !== undefined || p.rnr_samples !== undefined) && ['Samples that refuse', `${count(p.nak_samples ?? 0)} negative, ${count(p.rnr_samples ?? 0)} not ready`],
            p.no_credit_samples !== undefined && ['Samples without credits', `${count(p.no_credit_samples)} acknowledgements`],
            p.role !== undefined && ['Role', p.role],
            p.qp !== undefined && ['Queue pair', `${p.qp.local ?? '?'} to ${p.qp.remote ?? '?'}`],
            p.pairing?.by !== undefined && ['Other end', `${p.pairing.host ?? ''} ${p.pairing.device ?? ''}, known by ${words(p.pairing.by)}`],
            p.comm !== undefined && ['Process', `${p.comm}${p.pid === undefined ? '' : `, pid ${p.pid}`}`],
            p.job !== undefined && ['Job', <JobLink job={p.job} />],
            p.comm_id !== undefined && ['Communicator', p.comm_id],
            p.rank_candidates !== undefined && p.rank_candidates.length > 0 && ['Perhaps ranks', p.rank_candidates.map((c) => `${c.src_rank ?? '?'} › ${c.dst_rank ?? '?'}`).join(', ')],
            p.tuple_source !== undefined && ['Source port', words(p.tuple_source)],
            p.outer !== undefined && ['In a tunnel', flowText(p.outer)],
            p.source_routed === true && ['Path chosen', 'by its sender: its address bears it'],
            p.first_seen_ms !== undefined && ['First seen', clock(p.first_seen_ms)],
            p.path_since_ms !== undefined && ['On this path since', clock(p.path_since_ms)],
        ]} />
    );
}

function PathHistory({ flow }: { flow: Path['flow'] }): JSX.Element {
    const { keeps } = useStore();
    const asked = useHistory<Path>('path', flowKey(flow));
    if (keeps === false) return <Empty>This daemon keeps no history; a change of path is an event.</Empty>;
    const records = (asked.records ?? []).slice().reverse();
    // A path that stays is one line.
    const changes = records.filter((r, i) => i === records.length - 1 || hopsText(r.hops) !== hopsText(records[i + 1]?.hops) || r.state !== records[i + 1]?.state);
    if (changes.length === 0) return <Empty>{asked.refusal || (asked.records ? 'No earlier path is kept.' : 'Asking …')}</Empty>;
    return (
        <Table id="path-history" label="Paths that it took" plain rows={changes} rowKey={(r) => String(r.window_end_ms)} columns={[
            { key: 'from', title: 'From', cell: (r) => clock(r.path_since_ms ?? r.window_start_ms) },
            { key: 'state', title: 'State', cell: (r) => <Word word={r.state} /> },
            { key: 'rate', title: 'Rate', num: true, cell: (r) => rate(r.rate_bps) },
            { key: 'path', title: 'Path', cell: (r) => <Hops hops={r.hops} /> },
        ]} />
    );
}

function Way({ path, links, id }: { path: Path; links: Link[]; id: string }): JSX.Element {
    if (path.state === 'multipath')
        return (
            <>
                {(path.shares ?? []).map((s, i) => (
                    <div key={i}><p><strong>{percent(s.share)}</strong> of its samples went</p><HopsTable id={`${id}-${i}`} hops={s.hops ?? []} links={links} /></div>
                ))}
            </>
        );
    const likely = path.likely && path.likely.length > 0
        ? <><p>Likely, by evidence weaker than samples:</p><HopsTable id={`${id}-likely`} hops={path.likely} links={links} /></> : null;
    if (!path.hops || path.hops.length === 0) return <><Empty>{whyNot(path) || 'No hop of it is certain.'}</Empty>{likely}</>;
    return <><HopsTable id={id} hops={path.hops} links={links} />{likely}</>;
}

export function FlowView(): JSX.Element {
    const { route } = useStore();
    const name = route.names.join('/');
    const asked = useAnswer<Explanation>('explain', { flow: name });
    const path = asked.answer?.records[0];
    if (!path)
        return <><h1>Flow <span class="tuple">{name}</span></h1><Empty>{asked.refusal || 'Asking …'}</Empty></>;
    const back = asked.answer?.reverse?.[0];
    const text = flowText(path.flow);
    return (
        <>
            <h1>Flow <span class="tuple">{text}</span></h1>
            <OfNow what="Path and figures are those" />
            <FlowFacts p={path} />
            <Section title="Path"><Way path={path} links={asked.answer?.links ?? []} id="hops" /></Section>
            <ProbeOf flow={name} />
            {(asked.answer?.collisions ?? []).length > 0
                ? <Section title="Collisions on it"><div class="cards">{asked.answer?.collisions?.map((e) => <EventCard key={e.subject} event={e} open />)}</div></Section>
                : <EventsOf test={(e) => e.evidence?.flow !== undefined && flowText(e.evidence.flow) === text} none="No active event on its path." />}
            {back ? <Section title="Way back"><p><FlowLink flow={back.flow} /> ({back.role}), <Word word={back.state} />: <Hops hops={back.hops} /></p></Section> : null}
            <Section title="Paths that it took"><PathHistory flow={path.flow} /></Section>
        </>
    );
}
