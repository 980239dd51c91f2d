// SPDX-License-Identifier: Apache-2.0
// What other policies of routing would have done to the last window's traffic: computed when asked for.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { get, Refusal } from '../api.ts';
import { useStore } from '../hooks.ts';
import type { Answer, MovedFlow, WhatIf } from '../records.ts';
import { between } from '../text.ts';
import { Table } from '../table.tsx';
import { Empty, Section } from '../ui.tsx';
import { errorsOf, figuresOf, flowsText, movesOf, pathText, rangeText, type Figure, type Range } from '../whatif.ts';

/** It may be computed for that long. */
const COMPUTE_MS = 600_000;

function Strip({ range, of }: { range: Range; of: Figure }): JSX.Element {
    const x = (value: number) => Math.min(100, 100 * value / of.top);
    return (
        <li>
            <span class="policy">{range.policy}</span>
            <svg class="strip" aria-hidden="true" viewBox="0 0 100 10" preserveAspectRatio="none">
                <rect class="axis" x="0" y="4.5" width="100" height="1" />
                <rect class="range" x={x(range.min)} y="2" width={x(range.max) - x(range.min)} height="6" />
                <line class="mean" x1={x(range.mean)} x2={x(range.mean)} y1="1" y2="9" />
                {of.measured === undefined ? null : <line class="measured" x1={x(of.measured)} x2={x(of.measured)} y1="0" y2="10" />}
            </svg>
            <span class="figures">{rangeText(range)}</span>
        </li>
    );
}

function Strips({ of }: { of: Figure }): JSX.Element {
    const measured = of.measured === undefined ? 'not measured' : `measured: ${of.measured.toFixed(1)} %`;
    return (
        <figure class="whatif">
            <figcaption><b>{of.title}</b>, computed; <span class="measured">{measured}</span>. The axis ends at {String(of.top)} %.</figcaption>
            <ul aria-label={`${of.title}, by policy`}>
                {of.ranges.map((r) => <Strip key={r.policy} range={r} of={of} />)}
            </ul>
        </figure>
    );
}

/** Which flows the plan moves, from which path to which. */
function Moves({ of }: { of: WhatIf[] }): JSX.Element | null {
    const moves = movesOf(of);
    if (!moves) return null;
    const key = (m: MovedFlow) => `${m.flow?.src ?? '?'}:${m.flow?.sport ?? '?'} > ${m.flow?.dst ?? '?'}`;
    return (
        <>
            <h3>Flows that the plan moves</h3>
            <p class="note">Nothing is moved by this: source ports for a job are planned by fabrictrace plan JOB.</p>
            <Table id="moves" label="Flows that the plan moves" rows={moves.moved} total={moves.of} rowKey={key} columns={[
                { key: 'flow', title: 'Flow', by: key, cell: key },
                { key: 'hosts', title: 'Hosts', minor: true, by: (m) => m.src_host, cell: (m) => `${m.src_host ?? '?'} > ${m.dst_host ?? '?'}` },
                { key: 'before', title: 'Path', by: (m) => pathText(m.hops_before), cell: (m) => pathText(m.hops_before) },
                { key: 'after', title: 'Path by the plan', by: (m) => pathText(m.hops), cell: (m) => pathText(m.hops) },
            ]} />
        </>
    );
}

function Computed({ answer }: { answer: Answer<WhatIf> }): JSX.Element {
    const first = answer.records[0];
    if (!first) return <Empty>No flow of the last window counts: there is nothing to compute with.</Empty>;
    return (
        <>
            <p class="note">
                Computed by a model of long flows that share links fairly, not measured:
                window {between(first.window_start_ms ?? 0, first.window_end_ms ?? 0)}, {flowsText(first)}.
                A bar is the range over the draws of a policy by chance, the thick mark its mean, the dashed line what was measured.
            </p>
            {figuresOf(answer.records).map((f) => <Strips key={f.title} of={f} />)}
            <Moves of={answer.records} />
            <h3>Error of the model in the measured case</h3>
            <ul class="errors">{errorsOf(first).map((text) => <li key={text}>{text}</li>)}</ul>
        </>
    );
}

/** Of the present window; nothing of past ones. */
export function WhatIfOf(): JSX.Element | null {
    const { at } = useStore();
    const [asked, set] = useState<{ answer?: Answer<WhatIf>; text: string; waits: boolean }>({ text: '', waits: false });
    if (at !== undefined) return null;
    const compute = () => {
        set({ text: 'Computing …', waits: true });
        get<Answer<WhatIf>>('whatif', {}, undefined, COMPUTE_MS).then(
            (answer) => set({ answer, text: 'Computed.', waits: false }),
            (error: unknown) => {
                const busy = error instanceof Refusal && error.status === 503;
                set({ text: `${error instanceof Error ? error.message : String(error)}${busy ? '; try again soon' : ''}`, waits: false });
            });
    };
    return (
        <Section title="What other routing would have done" id="whatif">
            <div class="filters" data-nocopy>
                <button type="button" onClick={() => { if (!asked.waits) compute(); }} aria-disabled={asked.waits}>Compute for the last window</button>
                <span role="status">{asked.text}</span>
            </div>
            {asked.answer ? <Computed answer={asked.answer} /> : null}
        </Section>
    );
}
