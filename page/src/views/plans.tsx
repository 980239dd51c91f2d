// SPDX-License-Identifier: Apache-2.0
// Plans of source ports that queue pairs of a job have, and whether samples confirm them.
import type { JSX } from 'preact';
import { useAnswer, useStore } from '../hooks.ts';
import type { Answer, Plan } from '../records.ts';
import { clock, count } from '../text.ts';
import { Section, Table, Word } from '../ui.tsx';

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

/** Of one job, now; nothing where it has none. */
export function PlansOf({ job }: { job: string }): JSX.Element | null {
    const { at } = useStore();
    const asked = useAnswer<Answer<Plan>>(at === undefined ? 'plans' : '', { job });
    const found = at === undefined ? asked.answer?.records ?? [] : [];
    if (found.length === 0) return null;
    return (
        <Section title="Plans of source ports">
            <Table
                id="plans" label="Plans of source ports" rows={found} rowKey={(p) => `${p.uid}/${p.time_ms}`} sort="-made"
                columns={[
                    { key: 'made', title: 'Made', num: true, by: (p) => p.time_ms, cell: (p) => clock(p.time_ms ?? 0) },
                    { key: 'user', title: 'User', num: true, by: (p) => p.uid, cell: (p) => String(p.uid ?? '') },
                    { key: 'stage', title: 'Stage', by: (p) => p.stage, cell: (p) => <Stage of={p} /> },
                    { key: 'ports', title: 'Ports', num: true, by: (p) => p.ports_given, cell: (p) => count(p.ports_given ?? 0) },
                    { key: 'confirmed', title: 'Confirmed', num: true, by: (p) => p.ports_confirmed, cell: (p) => count(p.ports_confirmed ?? 0) },
                    { key: 'missed', title: 'Missed', num: true, by: (p) => p.ports_missed, cell: (p) => count(p.ports_missed ?? 0) },
                    { key: 'refused', title: 'Refused', num: true, by: (p) => p.ports_refused, cell: (p) => count(p.ports_refused ?? 0) },
                    { key: 'since', title: 'Since', num: true, by: (p) => p.since_ms, cell: (p) => clock(p.since_ms ?? 0) },
                ]}
            />
        </Section>
    );
}
