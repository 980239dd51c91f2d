// SPDX-License-Identifier: Apache-2.0
// What is not seen: the doctor's findings, and what was lost on the way.
import type { JSX } from 'preact';
import { useAnswer, useStore } from '../hooks.ts';
import type { Answer, Finding, Loss } from '../records.ts';
import { clock, count, words } from '../text.ts';
import { Table } from '../table.tsx';
import { Empty, HostLink, NotYet, OfNow, PortLink, Section, SwitchLink, Word } from '../ui.tsx';

function Where({ f }: { f: Finding }): JSX.Element {
    if (f.switch && f.port) return <PortLink sw={f.switch} port={f.port} />;
    if (f.switch) return <SwitchLink name={f.switch} />;
    if (f.host) return <><HostLink name={f.host} /> {f.device ?? ''}</>;
    return <>the fabric</>;
}

interface LossRow {
    key: string;
    program: string;
    source: string;
    stage: string;
    unit: string;
    received: number;
    dropped: number;
    why: string;
}

function lossRows(records: Loss[]): LossRow[] {
    return records.flatMap((r) => (r.stages ?? []).map((s) => {
        const drops = (s.drops ?? []).filter((d) => d.count > 0);
        return {
            key: `${r.program}/${r.source}/${s.name}`, program: r.program ?? '', source: r.source ?? '', stage: s.name, unit: s.unit ?? '',
            received: s.received ?? 0, dropped: drops.reduce((n, d) => n + d.count, 0),
            why: drops.map((d) => `${words(d.reason)} ${count(d.count)}`).join(', '),
        };
    })).filter((r) => r.received > 0 || r.dropped > 0);
}

export function UnseenView(): JSX.Element {
    const { findings, fabric } = useStore();
    const asked = useAnswer<Answer<Loss>>('loss');
    const rows = lossRows(asked.answer?.records ?? []);
    const order = findings.slice().sort((a, b) => Number(a.severity === 'info') - Number(b.severity === 'info'));
    return (
        <>
            <h1>What is not seen</h1>
            <OfNow what="What the doctor finds and what was lost are" />
            <Section title="Doctor">
                {!fabric ? <NotYet /> : order.length === 0
                    ? <Empty>The doctor finds nothing that is missing.</Empty>
                    : <Table id="doctor" label="What is not seen, and what to do" rows={order} rowKey={(f) => `${f.switch}/${f.port}/${f.host}/${f.text}`} columns={[
                        { key: 'severity', title: 'Weight', cell: (f) => <Word word={f.severity ?? 'info'} />, by: (f) => (f.severity === 'info' ? 1 : 0) },
                        { key: 'where', title: 'Where', cell: (f) => <Where f={f} />, by: (f) => `${f.switch ?? f.host ?? ''} ${f.port ?? ''}` },
                        { key: 'text', title: 'What', cell: (f) => f.text },
                        { key: 'advice', title: 'To do', cell: (f) => f.advice ?? '' },
                        { key: 'since', title: 'Since', num: true, minor: true, cell: (f) => clock(f.since_ms), by: (f) => f.since_ms, unit: 'Unix ms' },
                    ]} />}
            </Section>
            <Section title="Lost on the way">
                <p class="lead">Everything that enters is counted once where it leaves: received = processed + pending + dropped.</p>
                {rows.length === 0
                    ? <Empty>{asked.refusal || (asked.answer ? 'Nothing has come in yet.' : 'Asking …')}</Empty>
                    : <Table id="loss" label="Accounting of each program and stage" rows={rows} rowKey={(r) => r.key} sort="-dropped" columns={[
                        { key: 'program', title: 'Program', cell: (r) => r.program, by: (r) => r.program },
                        { key: 'source', title: 'Source', minor: true, cell: (r) => r.source, by: (r) => r.source },
                        { key: 'stage', title: 'Stage', cell: (r) => r.stage, by: (r) => r.stage },
                        { key: 'received', title: 'Received', num: true, cell: (r) => count(r.received), by: (r) => r.received },
                        { key: 'unit', title: 'Of', minor: true, cell: (r) => r.unit, by: (r) => r.unit },
                        { key: 'dropped', title: 'Dropped', num: true, cell: (r) => count(r.dropped), by: (r) => r.dropped },
                        { key: 'why', title: 'Why', cell: (r) => r.why },
                    ]} />}
            </Section>
        </>
    );
}
