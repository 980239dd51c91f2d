// SPDX-License-Identifier: Apache-2.0
import type { JSX } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useAnswer, useDark, useStore, useWidth } from '../hooks.ts';
import { byName, slowdown, standsIn } from '../model.ts';
import type { Answer, Communicator, Edge, Path, Rank, Rhythm } from '../records.ts';
import { palette, STEPS } from '../scale.ts';
import { bytes, clock, count, nanoseconds, NONE, notInSums, plural, rate, ratio } from '../text.ts';
import { Table } from '../table.tsx';
import { A, change, Empty, Facts, HostLink, JobLink, OfNow, PortLink, Section } from '../ui.tsx';
import { DiagnosesOf, SyndromeWord } from './diagnoses.tsx';
import { EventsOf } from './events.tsx';
import { FlowsTable, PATHS } from './flows.tsx';
import { PlansOf } from './plans.tsx';
import { SpreadOf, rhythmText, sentFacts, useRhythm } from './choices.tsx';

interface Job {
    name: string;
    ranks: Rank[];
    comms: string[];
    hosts: string[];
    processes: number;
}

/** A process has a rank in each of its communicators, or several where it drives several GPUs. */
function processesOf(ranks: Rank[]): number {
    return new Set(ranks.filter((r) => !r.closed).map((r) => `${r.host ?? ''}/${r.pid ?? ''}`)).size;
}

/** The communicators of ranks, those with the most ranks first. */
function commsOf(ranks: Rank[]): string[] {
    const sizes = new Map<string, number>();
    for (const r of ranks) sizes.set(r.comm_id, Math.max(sizes.get(r.comm_id) ?? 0, r.ranks ?? 0));
    return [...sizes].sort((a, b) => b[1] - a[1] || byName(a[0], b[0])).map(([id]) => id);
}

/** Those of ranks, and those that flows alone are known of. */
function jobsOf(ranks: Rank[], rhythms: Rhythm[]): Job[] {
    const by = new Map<string, Rank[]>();
    for (const r of ranks) {
        const name = r.job ?? '';
        const of = by.get(name);
        if (of) of.push(r);
        else by.set(name, [r]);
    }
    for (const r of rhythms) if (r.job && !by.has(r.job)) by.set(r.job, []);
    return [...by].map(([name, of]) => ({
        name, ranks: of, comms: commsOf(of), processes: processesOf(of),
        hosts: [...new Set(of.map((r) => r.host).filter((h) => h !== undefined))].sort(byName),
    })).sort((a, b) => byName(a.name, b.name));
}

/** How much longer the slowest peer of a rank takes than its others. */
function slower(r: Rank): number | undefined {
    return r.slowest_step_median_ns !== undefined && r.others_step_median_ns ? r.slowest_step_median_ns / r.others_step_median_ns : undefined;
}

function slowestOf(ranks: Rank[]): Rank | undefined {
    return ranks.filter((r) => slower(r) !== undefined).sort((a, b) => (slower(b) ?? 0) - (slower(a) ?? 0))[0];
}

/** A rank's number is one of its communicator: the host says who it is. */
function Who({ rank, host }: { rank: number | undefined; host: string | undefined }): JSX.Element {
    return <>rank {rank}{host === undefined ? '' : <> on <HostLink name={host} /></>}</>;
}

/** of: the ranks of the job, which know the hosts. */
function Slowest({ rank, of }: { rank: Rank | undefined; of: Rank[] }): JSX.Element {
    if (!rank) return <span>{'–'}</span>;
    const peer = of.find((r) => r.comm_id === rank.comm_id && r.rank === rank.slowest_peer);
    return (
        <>
            <Who rank={rank.rank} host={rank.host} /> waits for <Who rank={rank.slowest_peer} host={peer?.host} />{' '}
            of communicator {rank.comm_id}: {nanoseconds(rank.slowest_step_median_ns)}, its others {nanoseconds(rank.others_step_median_ns)}
            {rank.slowest_switch && rank.slowest_port ? <> over <PortLink sw={rank.slowest_switch} port={rank.slowest_port} /></> : ''}
        </>
    );
}

/** That are named of a job in the list of all. */
const DIAGNOSES = 2;

export function JobsView(): JSX.Element {
    const asked = useAnswer<Answer<Rank>>('ranks');
    const flows = useAnswer<Answer<Rhythm>>('rhythms');
    const jobs = useMemo(() => jobsOf(asked.answer?.records ?? [], flows.answer?.records ?? []), [asked.answer, flows.answer]);
    const { diagnoses } = useStore();
    const of = (j: { name: string }) => diagnoses.filter((d) => (d.job ?? '') === j.name);
    const unknown = <span class="none">{NONE}</span>;
    return (
        <>
            <h1>Jobs</h1>
            <OfNow what="Ranks are those" />
            {jobs.length === 0
                ? <Empty>{asked.refusal || (asked.answer ? 'No job is known. Ranks come from the NCCL plugin inside the jobs, names of jobs from agents (fabrictrace-agent(8)).' : 'Asking …')}</Empty>
                : <Table id="jobs" label="Jobs" rows={jobs} rowKey={(j) => j.name} sort="-diagnosis" columns={[
                    { key: 'job', title: 'Job', cell: (j) => j.name ? <JobLink job={j.name} /> : <A view="job" names={['-']}>without a name</A>, by: (j) => j.name },
                    { key: 'processes', title: 'Processes', num: true, cell: (j) => j.ranks.length === 0 ? unknown : count(j.processes), by: (j) => j.ranks.length === 0 ? undefined : j.processes },
                    { key: 'comms', title: 'Communicators', num: true, minor: true, cell: (j) => j.ranks.length === 0 ? unknown : count(j.comms.length), by: (j) => j.ranks.length === 0 ? undefined : j.comms.length },
                    { key: 'hosts', title: 'Hosts', num: true, cell: (j) => j.ranks.length === 0 ? unknown : count(j.hosts.length), by: (j) => j.ranks.length === 0 ? undefined : j.hosts.length },
                    { key: 'diagnosis', title: 'Diagnosis', cell: (j) => of(j).slice(0, DIAGNOSES).map((d, i) => <>{i ? ', ' : ''}<SyndromeWord of={d} /></>), by: (j) => of(j).length || undefined },
                    { key: 'slow', title: 'Slowest pair', cell: (j) => <Slowest rank={slowestOf(j.ranks)} of={j.ranks} />, by: (j) => slower(slowestOf(j.ranks) ?? { comm_id: '', rank: 0 }) },
                ]} />}
        </>
    );
}

const HEAT_MAX = 620;

/** Who sends how much to whom: rows send, columns receive. */
function Heat({ comm }: { comm: Communicator }): JSX.Element {
    const [frame, space] = useWidth<HTMLDivElement>();
    const dark = useDark();
    const canvas = useRef<HTMLCanvasElement>(null);
    const [said, say] = useState('');
    // There may be more edges than a call takes arguments.
    const n = useMemo(() => (comm.edges ?? []).reduce((most, e) => Math.max(most, e.src + 1, e.dst + 1), Math.max(comm.ranks ?? 0, 1)), [comm]);
    const sums = useMemo(() => {
        const at = new Map<number, { sent: number; slow: number }>();
        for (const e of comm.edges ?? []) {
            const was = at.get(e.src * n + e.dst) ?? { sent: 0, slow: 0 };
            at.set(e.src * n + e.dst, { sent: was.sent + Math.max(e.sent_bytes ?? 0, e.received_bytes ?? 0), slow: Math.max(was.slow, e.step_median_ns ?? 0) });
        }
        return at;
    }, [comm, n]);
    const cell = Math.max(1, Math.min(22, Math.floor((Math.min(space, HEAT_MAX) - 34) / n)));
    useLayoutEffect(() => {
        const e = canvas.current;
        const c = e?.getContext('2d');
        if (!e || !c || space === 0) return;
        const dots = devicePixelRatio || 1;
        const side = 34 + cell * n;
        e.width = e.height = side * dots;
        e.style.width = e.style.height = `${side}px`;
        c.scale(dots, dots);
        const style = getComputedStyle(e);
        let most = 1;
        for (const s of sums.values()) most = Math.max(most, s.sent);
        const colours = palette(dark);
        c.fillStyle = style.getPropertyValue('--sunken');
        c.fillRect(34, 18, cell * n, cell * n);
        for (const [index, s] of sums) {
            c.fillStyle = colours[Math.round(Math.sqrt(s.sent / most) * (STEPS - 1))] ?? '';
            c.fillRect(34 + (index % n) * cell, 18 + Math.floor(index / n) * cell, cell > 4 ? cell - 1 : cell, cell > 4 ? cell - 1 : cell);
        }
        c.fillStyle = style.getPropertyValue('--muted');
        c.font = `11px ${style.fontFamily}`;
        const step = Math.max(1, Math.ceil(22 / cell));
        for (let i = 0; i < n; i += step) {
            c.textAlign = 'right';
            c.fillText(String(i), 28, 18 + i * cell + Math.min(cell, 12));
            c.textAlign = 'left';
            c.fillText(String(i), 34 + i * cell, 12);
        }
    }, [sums, cell, dark, space]);
    const under = (e: MouseEvent) => {
        const box = (e.currentTarget as Element).getBoundingClientRect();
        const dst = Math.floor((e.clientX - box.left - 34) / cell);
        const src = Math.floor((e.clientY - box.top - 18) / cell);
        const s = sums.get(src * n + dst);
        say(src < 0 || dst < 0 || src >= n || dst >= n ? '' : s ? `rank ${src} to rank ${dst}: ${bytes(s.sent)}, median step ${nanoseconds(s.slow)}` : `rank ${src} to rank ${dst}: nothing`);
    };
    return (
        <div ref={frame} class="heat">
            <canvas ref={canvas} role="img" aria-label={`Bytes from each of ${n} ranks to each; the table below has the figures`}
                onMouseMove={under} onMouseLeave={() => say('')} />
            <p class="readout" data-nocopy>{said || 'Rows send, columns receive; the darker or brighter, the more.'}</p>
        </div>
    );
}

function Edges({ comm }: { comm: Communicator }): JSX.Element {
    const at = new Map((comm.members ?? []).map((m) => [m.rank, m]));
    const host = (rank: number) => <>{rank} <HostLink name={at.get(rank)?.host} /></>;
    return (
        <Table id={`edges-${comm.comm_id}`} label="What ranks sent each other" rows={comm.edges ?? []} rowKey={(e: Edge) => `${e.src}-${e.dst}-${e.op}`} sort="-step" columns={[
            { key: 'src', title: 'From rank', cell: (e) => host(e.src), by: (e) => e.src },
            { key: 'dst', title: 'To rank', cell: (e) => host(e.dst), by: (e) => e.dst },
            { key: 'op', title: 'Operation', minor: true, cell: (e) => e.op ?? '', by: (e) => e.op },
            { key: 'bytes', title: 'Sent', num: true, cell: (e) => bytes(e.sent_bytes), by: (e) => e.sent_bytes, unit: 'bytes' },
            { key: 'expected', title: 'Expected', num: true, minor: true, cell: (e) => bytes(e.expected_bytes), by: (e) => e.expected_bytes, unit: 'bytes' },
            { key: 'step', title: 'Median step', num: true, cell: (e) => nanoseconds(e.step_median_ns), by: (e) => e.step_median_ns, unit: 'ns' },
            { key: 'max', title: 'Longest', num: true, minor: true, cell: (e) => nanoseconds(e.step_max_ns), by: (e) => e.step_max_ns, unit: 'ns' },
        ]} />
    );
}

function RanksTable({ ranks }: { ranks: Rank[] }): JSX.Element {
    return (
        <Table id="ranks" label="Ranks" rows={ranks} rowKey={(r) => `${r.comm_id}/${r.rank}`} columns={[
            { key: 'rank', title: 'Rank', num: true, cell: (r) => r.rank, by: (r) => r.rank },
            { key: 'comm', title: 'Communicator', minor: true, cell: (r) => r.comm_id, by: (r) => r.comm_id },
            { key: 'host', title: 'Host', cell: (r) => <HostLink name={r.host} />, by: (r) => r.host },
            { key: 'gpu', title: 'GPU', minor: true, cell: (r) => r.gpu ?? '', by: (r) => r.gpu },
            { key: 'op', title: 'Last', cell: (r) => r.closed ? 'closed' : `${r.op ?? ''} ${clock(r.time_ms)}`, by: (r) => r.time_ms },
            { key: 'stands', title: 'Stands in', cell: (r) => standsIn(r).operation, by: (r) => standsIn(r).operation || undefined },
            { key: 'state', title: 'State', cell: (r) => standsIn(r).state, by: (r) => standsIn(r).state || undefined },
            { key: 'slow', title: 'Waits for', cell: (r) => r.slowest_peer === undefined ? '' : <Slowest rank={r} of={ranks} />, by: (r) => slower(r) },
            { key: 'times', title: '×', num: true, cell: (r) => ratio(slower(r)), by: (r) => slower(r) },
        ]} />
    );
}

/** That are named; the table of ranks has all. */
const HOSTS = 12;

export function JobView(): JSX.Element {
    const { route, events, fabric } = useStore();
    const name = route.names[0] ?? '';
    const real = name === '-' ? '' : name;
    const asked = useAnswer<Answer<Rank>>('ranks', { job: real });
    const ranks = (asked.answer?.records ?? []).filter((r) => (r.job ?? '') === real);
    const hosts = [...new Set(ranks.map((r) => r.host ?? '?'))].sort(byName);
    const comms = commsOf(ranks);
    const slowest = slowestOf(ranks);
    const chosen = route.params['comm'] ?? slowest?.comm_id ?? comms[0] ?? '';
    const matrix = useAnswer<Answer<Communicator>>(chosen ? 'matrix' : '', { comm: chosen });
    const comm = matrix.answer?.records.find((c) => c.comm_id === chosen);
    const paths = useAnswer<Answer<Path>>('paths', { job: real, limit: PATHS });
    const flows = (paths.answer?.records ?? []).filter((p) => (p.job ?? '') === real && real !== '');
    const mine = events.filter((e) => e.kind === 'collision' && !e.cleared && (e.evidence?.victims ?? []).some((v) => v.job === real && real !== ''));
    const cost = Math.max(0, ...mine.map((e) => slowdown(e) ?? 0));
    const rhythm = useRhythm(real);
    const more = Math.max(0, (paths.answer?.total ?? 0) - (paths.answer?.records.length ?? 0));
    const total = flows.reduce((sum, p) => sum + (p.rate_bps ?? 0), 0);
    if (!asked.answer) return <><h1>Job {name}</h1><Empty>{asked.refusal || 'Asking …'}</Empty></>;
    if (ranks.length === 0 && flows.length === 0)
        return <><h1>Job {name}</h1><Empty>No rank or flow of such a job is known. <A view="jobs">All jobs</A></Empty></>;
    return (
        <>
            <h1>Job {real || 'without a name'}</h1>
            <OfNow what="Ranks, flows and sums are those" />
            <Facts of={[
                ['Processes', ranks.length === 0 ? 'not known: no NCCL plugin reports of it' : `${count(processesOf(ranks))}, in ${plural(comms.length, 'communicator')}: ${plural(ranks.filter((r) => !r.closed).length, 'rank')} in all`],
                ranks.length > 0 && ['Hosts', <>{hosts.slice(0, HOSTS).map((h, i) => <>{i ? ', ' : ''}<HostLink name={h} /></>)}{hosts.length > HOSTS ? ` and ${plural(hosts.length - HOSTS, 'other')}` : ''}</>],
                flows.length > 0 && ['Flows', more > 0 ? `${count(flows.length + more)}; the ${count(flows.length)} fastest: ${rate(total)}` : `${count(flows.length)}, ${rate(total)}`],
                ranks.length > 0 && ['Slowest pair', slowest ? <Slowest rank={slowest} of={ranks} /> : 'none stands out'],
                rhythm !== undefined && ['Rhythm', rhythmText(rhythm)],
                ...(rhythm === undefined ? [] : sentFacts(rhythm)),
                fabric !== undefined && ['Collisions', mine.length === 0 ? 'none of its flows collides' : `${plural(mine.length, 'link')} where its elephants collide: at most ${ratio(cost)} times as long as on even groups`],
            ]} />
            {real ? <DiagnosesOf job={real} /> : null}
            {real ? <PlansOf job={real} /> : null}
            {real ? <SpreadOf job={real} /> : null}
            {real ? <EventsOf test={(e) => (e.evidence?.victims ?? []).some((v) => v.job === real)} none="None of its flows collides." /> : null}
            {comms.length > 0
                ? <Section title="Who sends to whom">
                    {comms.length > 1
                        ? <p class="filters" data-nocopy><label for="communicator">Communicator</label> <select id="communicator" value={chosen} onChange={(e) => change({ comm: e.currentTarget.value })}>
                            {comms.map((c) => <option key={c} value={c}>{c}, {plural(ranks.find((r) => r.comm_id === c)?.ranks ?? 0, 'rank')}</option>)}
                        </select></p> : null}
                    {comm ? <><p class="lead">{comm.name ? `${comm.name}, ` : ''}{comm.comm_id}: {plural(comm.ranks ?? 0, 'rank')}, sums since the daemon started{notInSums(comm.members)}</p><Heat comm={comm} /><Edges comm={comm} /></> : <Empty>{matrix.refusal || 'Asking …'}</Empty>}
                </Section>
                : null}
            <Section title="Ranks"><RanksTable ranks={ranks} /></Section>
            {flows.length > 0 ? <Section title="Its flows"><FlowsTable id="job-flows" paths={flows} total={flows.length + more} /></Section> : null}
        </>
    );
}
