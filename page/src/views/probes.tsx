// SPDX-License-Identifier: Apache-2.0
// The last probe of a flow: which switches answered, and what stays unknown by it.
import type { JSX } from 'preact';
import { useAnswer, useStore } from '../hooks.ts';
import type { Answer, Probe, ProbeAnswer } from '../records.ts';
import { clock, count } from '../text.ts';
import { Table } from '../table.tsx';
import { Section, SwitchLink } from '../ui.tsx';

const OUTCOMES: Record<string, string> = {
    asked: 'its agent was asked, and has not said yet what came of it',
    answered: 'every switch that was probed answered',
    gaps: 'some of the switches answered',
    silent: 'no switch answered',
    refused: 'its agent sent nothing',
    lost: 'its agent was asked, and never said what came of it',
};

const GAPS: Record<string, string> = {
    none: '',
    address: 'no switch of the topology has this address',
    strange: 'this switch lies there on no path of the flow',
    next: 'to which switch it sends the flow',
    lag_member: 'the member of the aggregate',
    parallel: 'which of several links to the same switch',
    last: 'not probed further: the next switch is that of the other host',
};

function gapText(a: ProbeAnswer): string {
    if (a.gap === 'silent') return `no answer to ${count(a.sent)} probes: the switch limits its answers or sends none, or they were lost`;
    return GAPS[a.gap ?? ''] ?? a.gap ?? '';
}

/** Nothing where the flow was not probed. */
export function ProbeOf({ flow }: { flow: string }): JSX.Element | null {
    const { at } = useStore();
    const asked = useAnswer<Answer<Probe>>(at === undefined ? 'probes' : '', { flow });
    const probe = at === undefined ? asked.answer?.records[0] : undefined;
    if (!probe) return null;
    const who = probe.by_daemon ? 'for the daemon' : `for user ${probe.uid ?? '?'} of its host`;
    return (
        <Section title="Probe">
            <p>{`${clock(probe.time_ms)}, ${who}: ${OUTCOMES[probe.outcome ?? ''] ?? probe.outcome ?? ''}${probe.refused ? `: ${probe.refused}` : ''}.`}</p>
            {(probe.answers ?? []).length > 0 ? (
                <Table id="probe" label="Probe, switch by switch" plain rows={probe.answers ?? []} rowKey={(a) => String(a.ttl)} columns={[
                    { key: 'ttl', title: 'TTL', num: true, cell: (a) => String(a.ttl ?? '') },
                    { key: 'switch', title: 'Switch', cell: (a) => a.switch ? <SwitchLink name={a.switch} /> : '?' },
                    { key: 'address', title: 'Answer from', cell: (a) => a.address ?? '' },
                    { key: 'out', title: 'Out', cell: (a) => a.out ?? a.out_lag ?? '?' },
                    { key: 'gap', title: 'Not known', cell: (a) => gapText(a) },
                ]} />
            ) : null}
        </Section>
    );
}
