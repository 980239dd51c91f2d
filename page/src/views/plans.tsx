// SPDX-License-Identifier: Apache-2.0
// Plans of source ports that queue pairs of a job have, and whether samples confirm them.
import type { JSX } from 'preact';
import { useAnswer, useStore } from '../hooks.ts';
import type { Answer, Plan, PlanPort } from '../records.ts';
import { clock, count, flowText } from '../text.ts';
import { Table } from '../table.tsx';
import { FlowLink, HostLink, Section, Word } from '../ui.tsx';
import { pathText } from '../whatif.ts';

/** That are asked for at once. */
const MOVES = 500;

const ENDS: Record<string, string> = {
    owner: 'its owner took it back',
    contradicted: 'samples show a port on another path',
    unconfirmed: 'samples of a port show no single path',
};

function Stage({ of }: { of: Plan }): JSX.Element {
    const failed = of.stage === 'withdrawn' && of.end !== 'owner';
    const text = of.end === undefined ? of.stage ?? '?' : `${of.stage}: ${ENDS[of.end] ?? of.end}`;
    return <Word word={failed ? 'warning' : of.stage === 'confirmed' ? 'resolved' : 'info'} text={text} />;
}

const STATES: Record<string, [word: string, text: string]> = {
    awaited: ['info', 'awaited'],
    confirmed: ['resolved', 'confirmed'],
    missed: ['warning', 'on another path'],
    unconfirmed: ['warning', 'no single path'],
    refused: ['warning', 'port not taken'],
};

/** Which queue pairs got ports, from which path to which, and what samples say. */
function Moves({ job }: { job: string }): JSX.Element | null {
    const asked = useAnswer<Answer<PlanPort>>('moves', { job, limit: MOVES });
    const moves = asked.answer?.records ?? [];
    if (moves.length === 0) return null;
    return (
        <Section title="Queue pairs with ports of plans">
            <Table
                id="moves" label="Queue pairs with ports of plans" rows={moves} rowKey={(m) => `${m.plan_time_ms}/${flowText(m.flow)}`} total={asked.answer?.total}
                columns={[
                    { key: 'flow', title: 'Flow', cell: (m) => <FlowLink flow={m.flow} />, by: (m) => flowText(m.flow) },
                    { key: 'host', title: 'Host', minor: true, cell: (m) => <HostLink name={m.host} />, by: (m) => m.host },
                    { key: 'state', title: 'State', by: (m) => m.state, cell: (m) => <Word word={STATES[m.state ?? '']?.[0] ?? 'info'} text={STATES[m.state ?? '']?.[1] ?? m.state ?? '?'} /> },
                    { key: 'before', title: 'Path before', minor: true, cell: (m) => pathText(m.hops_before), by: (m) => pathText(m.hops_before) },
                    { key: 'after', title: 'Path predicted', cell: (m) => pathText(m.hops), by: (m) => pathText(m.hops) },
                ]}
            />
        </Section>
    );
}

/** Of one job, now; nothing where it has none. */
export function PlansOf({ job }: { job: string }): JSX.Element | null {
    const { at } = useStore();
    const asked = useAnswer<Answer<Plan>>(at === undefined ? 'plans' : '', { job });
    const found = at === undefined ? asked.answer?.records ?? [] : [];
    if (found.length === 0) return null;
    return (
        <>
            <Section title="Plans of source ports">
                <Table
                    id="plans" label="Plans of source ports" rows={found} rowKey={(p) => `${p.uid}/${p.time_ms}`} sort="-made"
                    columns={[
                        { key: 'made', title: 'Made', num: true, by: (p) => p.time_ms, unit: 'Unix ms', cell: (p) => clock(p.time_ms) },
                        { key: 'user', title: 'User', num: true, minor: true, by: (p) => p.uid, cell: (p) => String(p.uid ?? '') },
                        { key: 'stage', title: 'Stage', by: (p) => p.stage, cell: (p) => <Stage of={p} /> },
                        { key: 'ports', title: 'Ports', num: true, by: (p) => p.ports_given, cell: (p) => count(p.ports_given) },
                        { key: 'confirmed', title: 'Confirmed', num: true, minor: true, by: (p) => p.ports_confirmed, cell: (p) => count(p.ports_confirmed) },
                        { key: 'missed', title: 'Missed', num: true, by: (p) => p.ports_missed, cell: (p) => count(p.ports_missed) },
                        { key: 'refused', title: 'Refused', num: true, minor: true, by: (p) => p.ports_refused, cell: (p) => count(p.ports_refused) },
                        { key: 'since', title: 'Since', num: true, by: (p) => p.since_ms, unit: 'Unix ms', minor: true, cell: (p) => clock(p.since_ms) },
                    ]}
                />
            </Section>
            <Moves job={job} />
        </>
    );
}
