// SPDX-License-Identifier: Apache-2.0
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { Drawing } from '../drawing.tsx';
import { useDark, useMedia, usePast, useStore } from '../hooks.ts';
import { Matrix } from '../matrix.tsx';
import { byScope, byWorst, isSmall, verdictText, type Fabric, type Way } from '../model.ts';
import type { Event, Finding } from '../records.ts';
import { format } from '../route.ts';
import { css } from '../scale.ts';
import { count, percent, plural, probability, tenth } from '../text.ts';
import { Table } from '../table.tsx';
import { A, Empty, GroupLink, NotYet, PortLink, Section, StateMark, Word } from '../ui.tsx';
import type { Measure } from '../wayinfo.ts';
import { DiagnosisLine, diagnosisId } from './diagnoses.tsx';
import { EventLine } from './events.tsx';

const USES = [0, 0.1, 0.25, 0.5, 1];
const SHARES = [0, 1, 2, 3];

function Legend({ measure, fabric }: { measure: Measure; fabric: Fabric }): JSX.Element {
    const dark = useDark();
    const ticks: [number, string][] = measure === 'use'
        ? USES.map((u) => [Math.sqrt(u), percent(u)]) : SHARES.map((s) => [s / 3, s === 3 ? '3 ×' : `${s} ×`]);
    const steps = 32;
    return (
        <div class="legend" data-nocopy>
            <div class="legend-scale" aria-hidden="true">
                {Array.from({ length: steps }, (_, i) => <i key={i} style={{ background: css(i / (steps - 1), dark) }} />)}
                {ticks.map(([at, text]) => <b key={text} style={{ left: `${at * 100}%` }}>{text}</b>)}
            </div>
            <span class="legend-states">
                {(['used', 'idle', 'down', 'shut', 'unseen'] as const).filter((s) => s !== 'shut' || fabric.counts.shut > 0).map((s) => (
                    <span key={s}><StateMark state={s} /> {count(fabric.counts[s])}</span>
                ))}
            </span>
        </div>
    );
}

/** What is said of switches: by events and by the doctor. */
function troubles(events: Event[], findings: Finding[]): Map<string, string> {
    const found = new Map<string, string>();
    const add = (name: string | undefined, what: string) => {
        if (name) found.set(name, found.has(name) ? `${found.get(name)}; ${what}` : what);
    };
    for (const e of events) if (!e.cleared && e.severity !== 'info') add(e.evidence?.switch, e.message ?? e.kind);
    for (const f of findings) if (f.severity === 'warning') add(f.switch, f.text);
    return found;
}

function Troubled({ fabric }: { fabric: Fabric }): JSX.Element | null {
    const ways = [...fabric.ways.values()].filter((w) => w.state === 'down' || w.state === 'unseen').sort((a, b) => (a.state < b.state ? -1 : a.state > b.state ? 1 : 0));
    if (ways.length === 0) return null;
    return (
        <p class="troubled-links">
            {ways.slice(0, 12).map((w: Way) => (
                <span key={w.key}><StateMark state={w.state} /> <PortLink sw={w.switch} port={w.port} /> to {w.peer}</span>
            ))}
            {ways.length > 12 ? <A view="links" params={ways[0]?.state === ways[ways.length - 1]?.state ? { state: ways[0]?.state ?? '' } : { 'sort-links': 'state' }}>and {ways.length - 12} more</A> : null}
        </p>
    );
}

const BUSIEST = 5;

/** Where most of a link's speed is used. */
function Busiest({ fabric }: { fabric: Fabric }): JSX.Element | null {
    const ways: Way[] = [];
    for (const w of fabric.ways.values()) {
        if (w.state !== 'used' || w.use === undefined) continue;
        const at = ways.findIndex((x) => (w.use ?? 0) > (x.use ?? 0));
        if (at >= 0) ways.splice(at, 0, w);
        else if (ways.length < BUSIEST) ways.push(w);
        if (ways.length > BUSIEST) ways.pop();
    }
    if (ways.length === 0) return null;
    return <p class="troubled-links"><span>Busiest:</span>{ways.map((w) => <span key={w.key}><PortLink sw={w.switch} port={w.port} /> to {w.peer} {percent(w.use)}</span>)}</p>;
}

function Measures({ measure }: { measure: Measure }): JSX.Element {
    const { route } = useStore();
    return (
        <span class="choice" role="group" aria-label="Colour by" data-nocopy>
            {([['use', 'Used'], ['share', 'Against the even share']] as const).map(([name, text]) => (
                <a key={name} href={format({ ...route, params: { ...route.params, by: name } })} aria-current={measure === name ? 'true' : undefined}>{text}</a>
            ))}
        </span>
    );
}

function summary(fabric: Fabric): string {
    const tiers = fabric.tiers.map((t) => plural(t.switches.length, t.name === 'unknown' ? 'switch' : t.name, t.name === 'leaf' ? 'leaves' : t.name === 'unknown' ? 'switches' : `${t.name}s`));
    return `${tiers.join(', ')}; ${plural(fabric.ways.size, 'link')}, each direction counted: ${count(fabric.counts.used)} used, ${count(fabric.counts.idle)} idle, ${count(fabric.counts.down)} down, ${fabric.counts.shut ? `${count(fabric.counts.shut)} shut down, ` : ''}${count(fabric.counts.unseen)} not seen`;
}

const LINES = 8;
/** Above drawings that would hide them: large ones, and all on a narrow screen. */
const LINES_ABOVE = 4;

/** What is wrong now: jobs, events, groups. */
function Now({ fabric, lines }: { fabric: Fabric; lines: number }): JSX.Element {
    const { events, imbalance, diagnoses } = useStore();
    const standing = events.filter((e) => !e.cleared).sort(byWorst);
    const worst = imbalance.filter((i) => i.verdict !== 'idle').sort(byScope).slice(0, lines);
    return (
        <div class="beside">
            <Section title="Active now" aside={<A view="events">all events</A>}>
                {standing.length === 0 ? <Empty>{fabric.mute ? 'Nothing is known of this window.' : 'No active event: no collision, no fault, no link down.'}</Empty> : null}
                <ul class="lines">
                    {diagnoses.slice(0, lines).map((d) => <li key={diagnosisId(d)}><DiagnosisLine of={d} /></li>)}
                    {standing.slice(0, lines).map((e) => <li key={`${e.kind}/${e.subject}`}><EventLine event={e} /></li>)}
                </ul>
                {diagnoses.length > lines ? <p><A view="jobs">and {plural(diagnoses.length - lines, 'more diagnosis', 'more diagnoses')} of jobs</A></p> : null}
                {standing.length > lines ? <p><A view="events">and {plural(standing.length - lines, 'more event')}</A></p> : null}
            </Section>
            <Section title="Imbalance" aside={<A view="imbalance">all groups</A>}>
                {worst.length === 0
                    ? <Empty>No group carried flows in this window.</Empty>
                    : <Table id="worst" label="Imbalance, worst groups" plain rows={worst} rowKey={(r) => `${r.scope}/${r.name}`} columns={[
                        { key: 'name', title: 'Group', cell: (r) => <GroupLink name={r.name ?? ''} scope={r.scope} /> },
                        { key: 'fim', title: 'FIM, %', num: true, cell: (r) => tenth(r.fim) },
                        { key: 'chance', title: 'Chance, %', num: true, cell: (r) => tenth(r.fim_expected) },
                        { key: 'p', title: 'p', num: true, cell: (r) => probability(r.p_value) },
                        { key: 'verdict', title: 'Verdict', cell: (r) => <Word word={r.verdict} text={r.verdict === 'fault' || r.verdict === 'uneven' ? r.verdict : verdictText(r)} /> },
                    ]} />}
            </Section>
        </div>
    );
}

export function FabricView(): JSX.Element {
    const { fabric, events, findings, route } = useStore();
    const [said, say] = useState('');
    const beside = useMedia('(min-width: 1181px)');
    const measure: Measure = route.params['by'] === 'share' ? 'share' : 'use';
    const past = usePast();
    const trouble = useMemo(() => troubles(events, past ? [] : findings), [events, findings, past]);
    if (!fabric) return <NotYet />;
    const small = isSmall(fabric);
    const above = !small || !beside;
    const now = <Now key="now" fabric={fabric} lines={above ? LINES_ABOVE : LINES} />;
    return (
        <div class={small ? 'overview' : 'overview overview-large'}>
            <h1 class="hidden">Fabric {fabric.name}</h1>
            {above ? now : null}
            <Section title="Fabric" aside={<Measures measure={measure} />}>
                <p class="lead">{summary(fabric)}</p>
                {fabric.ways.size === 0
                    ? <Empty>No link is known yet. Links come from the topology file, from LLDP, or are learnt from the samples of flows that cross them; “Not seen” says what is missing.</Empty>
                    : small
                        ? <Drawing fabric={fabric} measure={measure} trouble={trouble} mark={say} />
                        : fabric.layers.map((l) => <Matrix key={`${l.low}/${l.high}`} layer={l} told={fabric} measure={measure} mark={say} />)}
                <p class="readout" role="status" data-nocopy>{said || 'Point at a link, or go to it by keys: its load is shown here.'}</p>
                <Legend measure={measure} fabric={fabric} />
                <Busiest fabric={fabric} />
                <Troubled fabric={fabric} />
            </Section>
            {above ? null : now}
        </div>
    );
}
