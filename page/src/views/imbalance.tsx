// SPDX-License-Identifier: Apache-2.0
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { bandOf } from '../chance.ts';
import { Chart } from '../chart.tsx';
import { useHistory, useStore } from '../hooks.ts';
import { imbalanceKey } from '../history.ts';
import { byScope, lacks, verdictRank, verdictText } from '../model.ts';
import type { Imbalance } from '../records.ts';
import { moment } from '../route.ts';
import { clock, count, percent, plural, probability, ratio, tenth } from '../text.ts';
import { lay } from '../timeline.ts';
import { Table } from '../table.tsx';
import { change, Empty, Facts, GroupLink, NotYet, Section, Word } from '../ui.tsx';
import { store } from '../store.ts';
import { HashOf } from './choices.tsx';
import { LinksTable } from './links.tsx';
import { WhatIfOf } from './whatif.tsx';

function Over({ name, series, unlike }: { name: string; series: Imbalance[]; unlike: string }): JSX.Element {
    const { route, at } = useStore();
    const a = moment(route.params, 'a');
    const b = moment(route.params, 'b');
    const points = useMemo(() => {
        const { times, values } = lay(series.map((r) => ({ ...r, band: bandOf(r) })), [(r) => r.fim, (r) => r.fim_expected, (r) => r.band?.high, (r) => r.band?.low]);
        const [fim = [], chance = [], high = [], low = []] = values;
        return {
            times,
            lines: [
                { label: 'FIM', values: fim, colour: '--accent', width: 2 },
                { label: 'by chance', values: chance, colour: '--muted', dash: [4, 4] },
                { label: 'chance, high', values: high, colour: '--muted', edge: true },
                { label: 'chance, low', values: low, colour: '--muted', edge: true },
            ],
        };
    }, [series]);
    if (series.length === 0) return <Empty>{unlike || 'No window with flows yet.'}</Empty>;
    const marks = [
        ...(a === undefined ? [] : [{ at: a, text: 'A' }]), ...(b === undefined ? [] : [{ at: b, text: 'B' }]),
        ...(at === undefined ? [] : [{ at, text: 'here' }]),
    ];
    return (
        <>
            <Chart times={points.times} series={points.lines} band={[3, 4]} marks={marks} unit="%" height={210}
                label={`FIM of ${name} over ${plural(series.length, 'window')}, with the band in which chance lies 90 of 100 times`}
                onPick={(ms) => { if (series.some((r) => r.window_start_ms === ms)) change({ at: String(ms) }); }} />
            {unlike ? <p class="note">{unlike}</p> : null}
        </>
    );
}

const FIGURES: [string, (i: Imbalance) => string, ((i: Imbalance) => number | undefined)?][] = [
    ['FIM, %', (i) => tenth(i.fim), (i) => i.fim],
    ['FIM by chance, %', (i) => tenth(i.fim_expected)],
    ['p', (i) => probability(i.p_value)],
    ['Max/mean', (i) => ratio(i.max_over_mean), (i) => i.max_over_mean],
    ['Effective links', (i) => `${tenth(i.effective_links)} of ${count(i.links)}`],
    ['FIM of bytes, %', (i) => tenth(i.fim_bytes), (i) => i.fim_bytes],
    ['Bottleneck ratio', (i) => ratio(i.bottleneck_ratio), (i) => i.bottleneck_ratio],
    ['Jain', (i) => ratio(i.jain)],
    ['Flows', (i) => count(i.flows)],
    ['Verdict', (i) => verdictText(i)],
];

function nearest(series: Imbalance[], ms: number | undefined): Imbalance | undefined {
    if (ms === undefined) return undefined;
    return series.find((r) => (r.window_end_ms ?? 0) > ms) ?? series[series.length - 1];
}

/** Before and after: two marked moments beside each other. */
function Compare({ series, here }: { series: Imbalance[]; here: Imbalance | undefined }): JSX.Element {
    const { route, window: shown } = useStore();
    const marked = { a: nearest(series, moment(route.params, 'a')), b: nearest(series, moment(route.params, 'b')) };
    const now = String(shown?.window_start_ms ?? '');
    const both = marked.a && (marked.b ?? here);
    const first = marked.a;
    const second = marked.b ?? here;
    return (
        <>
            <div class="filters" data-nocopy>
                <button type="button" onClick={() => change({ a: now })} disabled={!now}>Mark this moment as A</button>
                <button type="button" onClick={() => change({ b: now })} disabled={!now}>as B</button>
                {marked.a || marked.b ? <button type="button" onClick={() => change({ a: '', b: '' })}>Unmark</button> : null}
            </div>
            {both && first && second
                ? <Table id="compare" label="Before and after" plain rows={FIGURES} rowKey={(f) => f[0]} columns={[
                    { key: 'what', title: 'Figure', cell: (f) => f[0] },
                    { key: 'a', title: `A, ${clock(first.window_start_ms)}`, num: true, cell: (f) => f[1](first) },
                    { key: 'b', title: `${marked.b ? 'B' : 'here'}, ${clock(second.window_start_ms)}`, num: true, cell: (f) => f[1](second) },
                    {
                        key: 'change', title: 'Change', num: true, cell: (f) => {
                            const x = f[2]?.(first);
                            const y = f[2]?.(second);
                            return x === undefined || y === undefined ? '' : `${y >= x ? '+' : '−'}${Math.abs(y - x).toFixed(2)}`;
                        },
                    },
                ]} />
                : <p class="note">Mark a moment before a change as A and one after it as B: their figures are then shown beside each other here.</p>}
        </>
    );
}

function Chosen({ record, scope, name }: { record: Imbalance | undefined; scope: string; name: string }): JSX.Element {
    const { keeps, window: shown, links, fabric } = useStore();
    const key = `${scope}/${name}`;
    const asked = useHistory<Imbalance>('imbalance', key);
    const own = store.memory.of(key);
    const series = useMemo(() => asked.records ?? own, [asked.records, shown?.window_end_ms, own.length]);
    const unlike = keeps === false ? 'This daemon keeps no history: the line begins when this page was opened.' : asked.refusal;
    const of = (links ?? []).filter((l) => l.group === name);
    return (
        <>
            <Section title={`${scope === 'group' ? 'Group' : scope === 'layer' ? 'Layer' : 'Fabric'} ${name}`} id="chosen">
                {record
                    ? <Facts of={[
                        ['Verdict', <Word word={record.verdict} text={verdictText(record)} />],
                        record.fim !== undefined && ['FIM', `${tenth(record.fim)} %, chance gives ${tenth(record.fim_expected)} %`],
                        record.p_value !== undefined && ['p', probability(record.p_value)],
                        ['Flows', `${count(record.flows)} over ${plural(record.links ?? 0, 'link')}${record.flows_unplaced ? `, ${count(record.flows_unplaced)} more not placed` : ''}`],
                        record.bottleneck_ratio !== undefined && ['Bottleneck', `what waits for the slowest flow takes at most ${ratio(record.bottleneck_ratio)} times as long as on an even group`],
                        record.spine_crossings_avoidable !== undefined && record.spine_crossings_avoidable > 0 && ['Avoidable crossings', `${count(record.spine_crossings_avoidable)} flows crossed a spine though both ends hang on one leaf, ${percent(record.spine_crossings_avoidable_share)} of the bytes`],
                        record.rail_crossings !== undefined && record.rail_crossings > 0 && ['Rail crossings', `${count(record.rail_crossings)} flows, ${percent(record.rail_crossings_share)} of the bytes`],
                    ]} />
                    : fabric ? <Empty>Nothing is known of it in this window.</Empty> : <NotYet />}
                <Over name={name} series={series} unlike={unlike} />
            </Section>
            <Section title="Before and after"><Compare series={series} here={record} /></Section>
            {scope === 'group' ? <HashOf group={name} /> : null}
            {of.length > 0 ? <Section title="Its links"><LinksTable id="group-links" links={of} /></Section> : null}
        </>
    );
}

export function ImbalanceView(): JSX.Element {
    const { imbalance, route, fabric } = useStore();
    const rows = imbalance.slice().sort(byScope);
    const [scope = 'fabric', ...rest] = route.names;
    const name = rest.join('/') || fabric?.name || rows[0]?.name || '';
    const record = rows.find((r) => imbalanceKey(r) === `${scope}/${name}`) ?? (route.names.length === 0 ? rows.find((r) => r.scope === 'fabric') : undefined);
    return (
        <>
            <h1>Imbalance</h1>
            <Chosen key={`${scope}/${name}`} record={record} scope={record?.scope ?? scope} name={record?.name ?? name} />
            <Section title="Groups, layers, fabric">
                {rows[0] && lacks(rows[0]) ? <p class="note">Of this window: {lacks(rows[0])}.</p> : null}
                {!fabric ? <NotYet /> : rows.length === 0
                    ? <Empty>No window has closed yet, or no ECMP group is known.</Empty>
                    : <Table id="groups" label="Imbalance of every group" find="group, layer" rows={rows} rowKey={imbalanceKey}
                        rowClass={(r) => (r === record ? 'chosen' : '')} columns={[
                            { key: 'name', title: 'Group', cell: (r) => <GroupLink name={r.name ?? ''} scope={r.scope} />, by: (r) => r.name },
                            { key: 'scope', title: 'Scope', minor: true, cell: (r) => r.scope },
                            { key: 'links', title: 'Links', num: true, minor: true, cell: (r) => count(r.links), by: (r) => r.links },
                            { key: 'flows', title: 'Flows', num: true, cell: (r) => count(r.flows), by: (r) => r.flows },
                            { key: 'fim', title: 'FIM, %', num: true, cell: (r) => tenth(r.fim), by: (r) => r.fim },
                            { key: 'chance', title: 'By chance, %', num: true, cell: (r) => tenth(r.fim_expected), by: (r) => r.fim_expected },
                            { key: 'p', title: 'p', num: true, minor: true, cell: (r) => probability(r.p_value), by: (r) => r.p_value },
                            { key: 'max', title: 'Max/mean', num: true, minor: true, cell: (r) => ratio(r.max_over_mean), by: (r) => r.max_over_mean },
                            { key: 'neck', title: 'Bottleneck', num: true, minor: true, cell: (r) => ratio(r.bottleneck_ratio), by: (r) => r.bottleneck_ratio },
                            { key: 'verdict', title: 'Verdict', cell: (r) => <Word word={r.verdict} text={verdictText(r)} />, by: (r) => verdictRank(r.verdict) },
                        ]} />}
            </Section>
            <WhatIfOf />
        </>
    );
}
