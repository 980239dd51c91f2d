// SPDX-License-Identifier: Apache-2.0
// A switch, a host, and the list of hosts.
import type { ComponentChildren, JSX } from 'preact';
import { useAnswer, useStore } from '../hooks.ts';
import { byName, portKey, verdictText, type Way } from '../model.ts';
import type { Answer, Host, Path, Port, QueuePair, Rank } from '../records.ts';
import { clock, count, percent, plural, rate, tenth, words } from '../text.ts';
import { Table } from '../table.tsx';
import { A, Bar, Empty, Facts, FlowLink, HostLink, JobLink, NotYet, OfNow, PortLink, Section, StateMark, SwitchLink } from '../ui.tsx';
import { EventsOf } from './events.tsx';
import { FlowsTable, PATHS } from './flows.tsx';
import { Findings, findingsAt } from './links.tsx';

function PortsTable({ sw, ports, ways }: { sw: string; ports: Port[]; ways: Map<string, Way> }): JSX.Element {
    const of = (p: Port) => ways.get(portKey(sw, p.name));
    const back = (p: Port) => (p.peer && p.peer_port ? ways.get(portKey(p.peer, p.peer_port)) : undefined);
    return (
        <Table id="ports" label={`Ports of ${sw}`} rows={ports} rowKey={(p) => p.name} columns={[
            { key: 'port', title: 'Port', cell: (p) => of(p) ? <PortLink sw={sw} port={p.name} short /> : p.name, by: (p) => p.name },
            { key: 'to', title: 'Leads to', cell: (p) => p.peer ? <><SwitchLink name={p.peer} /> {p.peer_port}</> : p.host ? <HostLink name={p.host} /> : '', by: (p) => p.peer ?? p.host },
            { key: 'state', title: 'State', cell: (p) => { const w = of(p); return w ? <StateMark state={w.state} /> : ''; }, by: (p) => of(p)?.state },
            { key: 'use', title: 'Sends', num: true, cell: (p) => { const w = of(p); return w ? <Bar part={w.use}>{percent(w.use)}</Bar> : ''; }, by: (p) => of(p)?.use, unit: 'share' },
            { key: 'in', title: 'Receives', num: true, cell: (p) => { const w = back(p); return w ? percent(w.use) : ''; }, by: (p) => back(p)?.use, unit: 'share' },
            { key: 'speed', title: 'Speed', num: true, minor: true, cell: (p) => rate(p.speed_bps), by: (p) => p.speed_bps, unit: 'b/s' },
            { key: 'group', title: 'Group', minor: true, cell: (p) => p.group ?? '', by: (p) => p.group },
            { key: 'source', title: 'Known by', minor: true, cell: (p) => p.source ? `${p.source}${p.confirmed ? ', confirmed' : ''}` : '', by: (p) => p.source },
        ]} />
    );
}

export function SwitchView(): JSX.Element {
    const { route, fabric, findings, imbalance } = useStore();
    const name = route.names[0] ?? '';
    const sw = fabric?.switches.get(name);
    if (!fabric) return <><h1>Switch {name}</h1><NotYet /></>;
    if (!sw) return <><h1>Switch {name}</h1><Empty>No such switch is known. <A view="fabric">Fabric</A></Empty></>;
    const groups = imbalance.filter((i) => i.scope === 'group' && (i.name === `${name}/up` || i.name === `${name}/down`));
    return (
        <>
            <h1>Switch {name}</h1>
            <Facts of={[
                ['Tier', sw.tier ?? 'unknown'],
                (sw.addresses ?? []).length > 0 && ['Addresses', sw.addresses?.join(', ')],
                ['Ports', `${count((sw.ports ?? []).filter((p) => p.peer).length)} to switches, ${count((sw.ports ?? []).filter((p) => p.host).length)} to hosts`],
                ...groups.map((g): [string, JSX.Element] => [g.name ?? '', <><A view="imbalance" names={['group', g.name ?? '']}>{verdictText(g)}</A>{g.fim === undefined ? '' : `, FIM ${tenth(g.fim)} %, chance gives ${tenth(g.fim_expected)} %`}</>]),
                (sw.lags ?? []).length > 0 && ['Aggregates', sw.lags?.map((l) => `${l.name}: ${(l.members ?? []).join(', ')}`).join('; ')],
            ]} />
            <Findings of={findingsAt(findings, name)} />
            <EventsOf test={(e) => e.evidence?.switch === name || e.evidence?.peer === name} none="No active event at this switch." />
            <Section title="Ports"><PortsTable sw={name} ports={(sw.ports ?? []).slice().sort((a, b) => byName(a.name, b.name))} ways={fabric.ways} /></Section>
        </>
    );
}

const SOME = 4;

/** The first of many, and how many others there are. */
function some<T>(all: T[], one: (of: T) => ComponentChildren): JSX.Element {
    return <>{all.slice(0, SOME).map((x, i) => <>{i ? ', ' : ''}{one(x)}</>)}{all.length > SOME ? ` and ${plural(all.length - SOME, 'other')}` : ''}</>;
}

export function HostsView(): JSX.Element {
    const { topology } = useStore();
    const hosts = topology?.hosts ?? [];
    const at = (h: Host) => (h.nics ?? []).flatMap((n) => n.attach ?? []);
    return (
        <>
            <h1>Hosts</h1>
            {hosts.length === 0
                ? topology ? <Empty>No host is known yet: hosts are learnt from their packets or read from the topology file.</Empty> : <NotYet />
                : <Table id="hosts" label="Hosts" find="host, address, switch" rows={hosts} rowKey={(h) => h.name} sort="host" columns={[
                    { key: 'host', title: 'Host', cell: (h) => <HostLink name={h.name} />, by: (h) => h.name },
                    { key: 'addresses', title: 'Addresses', cell: (h) => some((h.nics ?? []).flatMap((n) => n.addresses ?? []), (a) => a), by: (h) => (h.nics ?? []).flatMap((n) => n.addresses ?? []).join(' ') },
                    { key: 'at', title: 'Attached to', cell: (h) => some(at(h), (a) => <><SwitchLink name={a.switch} /> {a.port}</>), by: (h) => at(h)[0]?.switch },
                    { key: 'nics', title: 'NICs', num: true, minor: true, cell: (h) => count(h.nics?.length ?? 0), by: (h) => h.nics?.length },
                ]} />}
        </>
    );
}

function QpsTable({ qps, total }: { qps: QueuePair[]; total: number | undefined }): JSX.Element {
    return (
        <Table id="qps" label="Queue pairs" rows={qps} total={total} rowKey={(q) => `${q.device}/${q.port}/${q.local}`} columns={[
            { key: 'device', title: 'Device', cell: (q) => `${q.device ?? ''}${q.port === undefined ? '' : `/${q.port}`}`, by: (q) => q.device },
            { key: 'qp', title: 'Queue pair', cell: (q) => `${q.local ?? '?'} to ${q.remote ?? '?'}`, by: (q) => q.local },
            { key: 'state', title: 'State', cell: (q) => words(q.state), by: (q) => q.state },
            { key: 'flow', title: 'Flow', cell: (q) => q.flow ? <FlowLink flow={q.flow} /> : '' },
            { key: 'peer', title: 'Peer', minor: true, cell: (q) => <HostLink name={q.peer_host} />, by: (q) => q.peer_host },
            { key: 'process', title: 'Process', minor: true, cell: (q) => q.comm ? `${q.comm} ${q.pid ?? ''}` : '', by: (q) => q.comm },
            { key: 'job', title: 'Job', cell: (q) => <JobLink job={q.job} />, by: (q) => q.job },
            { key: 'since', title: 'Since', num: true, minor: true, cell: (q) => clock(q.since_ms), by: (q) => q.since_ms, unit: 'Unix ms' },
        ]} />
    );
}

export function HostView(): JSX.Element {
    const { route, topology, findings } = useStore();
    const name = route.names[0] ?? '';
    const host = (topology?.hosts ?? []).find((h) => h.name === name);
    const paths = useAnswer<Answer<Path>>('paths', { host: name, limit: PATHS });
    const qps = useAnswer<Answer<QueuePair>>('qps', { host: name, limit: PATHS });
    const ranks = useAnswer<Answer<Rank>>('ranks', { host: name });
    const mine = (ranks.answer?.records ?? []).filter((r) => r.host === name);
    const flows = paths.answer?.records ?? [];
    const jobs = [...new Set([...mine.map((r) => r.job), ...flows.filter((p) => p.src_host === name).map((p) => p.job)].filter((j) => j !== undefined))];
    return (
        <>
            <h1>Host {name}</h1>
            <OfNow what="Flows, queue pairs and ranks are those" />
            {topology && !host ? <Empty>The topology has no such host; what other sources report of it is below.</Empty> : null}
            <Facts of={[
                ...(host?.nics ?? []).map((n, i): [string, JSX.Element] => [
                    n.rail === undefined ? `NIC ${i + 1}` : `Rail ${n.rail}`,
                    <>{(n.addresses ?? []).join(', ') || 'no address known'}{(n.attach ?? []).map((a) => <> at <SwitchLink name={a.switch} /> {a.port}</>)}</>,
                ]),
                jobs.length > 0 && ['Jobs', jobs.map((j, i) => <>{i ? ', ' : ''}<JobLink job={j} /></>)],
                mine.length > 0 && ['Ranks', mine.map((r) => String(r.rank)).join(', ')],
            ]} />
            <Findings of={findings.filter((f) => f.host === name)} />
            <EventsOf test={(e) => e.evidence?.host === name || (e.evidence?.victims ?? []).some((v) => v.src_host === name || v.dst_host === name)} none="No active event at this host." />
            <Section title="Flows">
                {flows.length === 0 ? <Empty>{paths.refusal || (paths.answer ? 'No flow of it is known.' : 'Asking …')}</Empty> : <FlowsTable id="host-flows" paths={flows} total={paths.answer?.total} />}
            </Section>
            <Section title="Queue pairs">
                {(qps.answer?.records ?? []).length === 0
                    ? <Empty>{qps.refusal || (qps.answer ? 'No queue pair is known: a fabrictrace-agent on the host reports them.' : 'Asking …')}</Empty>
                    : <><p class="lead">{plural(qps.answer?.total ?? 0, 'queue pair')}</p><QpsTable qps={qps.answer?.records ?? []} total={qps.answer?.total} /></>}
            </Section>
        </>
    );
}
