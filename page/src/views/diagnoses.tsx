// SPDX-License-Identifier: Apache-2.0
// What is wrong with a job: which rank hangs or is slow, who waits for it through whom, and why.
import type { JSX } from 'preact';
import { meaning } from '../advice.ts';
import { useAnswer, useStore } from '../hooks.ts';
import type { Answer, Diagnosis, SecondOpinion } from '../records.ts';
import { age, clock, count, plural, ratio, words } from '../text.ts';
import { Empty, Facts, FlowLink, HostLink, JobLink, PortLink, Section, Word } from '../ui.tsx';

const SHOWN = 20;

/** From who waits to whom all wait for. */
function Chain({ ranks }: { ranks: number[] }): JSX.Element {
    return <>{ranks.map((r, i) => <>{i ? ' waits for ' : ''}rank {r}</>)}</>;
}

function Lines({ of }: { of: string[] }): JSX.Element {
    return <ul>{of.map((line) => <li key={line}>{line}</li>)}</ul>;
}

const PROCESSES: Record<string, string> = {
    running: 'runs', stopped: 'stopped by a signal or a debugger', uninterruptible: 'waits in the kernel', gone: 'has ended',
};

const TRANSFERS: Record<string, string> = {
    queued: 'the proxy has not begun with it', idle: 'begun, no step of it is in progress',
    send_gpu_wait: 'waits for the GPU to fill the buffer', send_peer_wait: 'waits for the receiver to give room',
    send_wait: 'handed to the network, not completed', recv_wait: 'posted, nothing came',
    recv_flush_wait: 'received, on its way to the GPU', recv_gpu_wait: 'received, not taken by the GPU',
};

const SOURCES: Record<string, string> = { ras: 'NCCL RAS', flight_recorder: 'Flight Recorder' };

/** What a value of a later version means is not known: then it is shown as it is. */
function said(of: Record<string, string>, value: string): string {
    const text = of[value];
    return text === undefined ? words(value) : text;
}

function TheTransfer({ of, now }: { of: Diagnosis; now: number }): JSX.Element {
    const since = of.transfer_since_ms;
    return (
        <>
            {of.channel === undefined ? '' : `channel ${of.channel}: `}{said(TRANSFERS, of.transfer ?? '')} ({of.transfer})
            {since === undefined ? '' : `, since ${clock(since)}, ${age(now - since)}`}
        </>
    );
}

function Opinions({ of }: { of: SecondOpinion[] }): JSX.Element {
    return (
        <ul>
            {of.map((o) => (
                <li key={`${o.source}/${o.agrees}/${o.text}`}>
                    <strong>{said(SOURCES, o.source ?? 'unknown')} {o.agrees === undefined ? 'says' : o.agrees ? 'agrees' : 'contradicts'}</strong>
                    {o.text ? `: ${o.text}` : ''}{o.time_ms === undefined ? '' : ` (${clock(o.time_ms)})`}
                </li>
            ))}
        </ul>
    );
}

export function diagnosisId(d: Diagnosis): string {
    return `${d.job}/${d.communicator}/${d.syndrome}/${d.rank}`;
}

export function SyndromeWord({ of }: { of: Diagnosis }): JSX.Element {
    return <Word word={of.severity} text={meaning(of.syndrome === 'mixed' ? 'mixed_slow' : of.syndrome ?? '').name} />;
}

/** One line of a list: what, which job, since when. */
export function DiagnosisLine({ of }: { of: Diagnosis }): JSX.Element {
    const { window: shown } = useStore();
    return (
        <>
            <SyndromeWord of={of} /> job <JobLink job={of.job} />{' '}
            <span class="said">{of.message}</span>{' '}
            {of.since_ms === undefined ? null : <span class="since">since {clock(of.since_ms)}, {age((shown?.window_end_ms ?? Date.now()) - of.since_ms)}</span>}
        </>
    );
}

function DiagnosisCard({ of, open }: { of: Diagnosis; open: boolean }): JSX.Element {
    const { window: shown } = useStore();
    const now = shown?.window_end_ms ?? Date.now();
    const links = of.links ?? [];
    return (
        <article class={`card card-${of.severity ?? 'info'}`}>
            <h3>
                <SyndromeWord of={of} /> {of.rank === undefined ? 'no single rank' : <>rank {of.rank} <HostLink name={of.host} /></>}
                {of.since_ms === undefined ? null : <span class="since"> since {clock(of.since_ms)}, {age(now - of.since_ms)}</span>}
            </h3>
            {of.message ? <p>{of.message}</p> : null}
            {(of.wait_chain ?? []).length > 1 ? <p>Wait chain: <Chain ranks={of.wait_chain ?? []} /></p> : null}
            <details open={open}>
                <summary>Evidence, what to do</summary>
                <Facts of={[
                    of.operation !== undefined && ['Operation', `${of.operation}${of.sequence === undefined ? '' : ` ${count(of.sequence)}`}`],
                    of.pid !== undefined && of.pid > 0 && ['Process', `${of.pid}${of.process === undefined ? '' : `, ${said(PROCESSES, of.process)}`}`],
                    of.gpu !== undefined && ['GPU', of.gpu],
                    of.waiting !== undefined && ['Waiting', plural(of.waiting, 'rank')],
                    of.peer !== undefined && ['Other end', <>rank {of.peer} <HostLink name={of.peer_host} /></>],
                    of.transfer !== undefined && ['Transfer', <TheTransfer of={of} now={now} />],
                    of.qp !== undefined && ['Queue pair', `0x${of.qp.toString(16)} (${of.qp})`],
                    of.slowdown !== undefined && ['Takes', `${ratio(of.slowdown)} times as long as usual`],
                    of.flow !== undefined && ['Flow', <FlowLink flow={of.flow} />],
                    links.length > 0 && ['Links under it', links.map((l, i) => <>{i ? ', ' : ''}<PortLink sw={l.switch ?? ''} port={l.port ?? ''} />{l.suspect ? ` (${plural(l.errors ?? 0, 'error')}, ${plural(l.discards ?? 0, 'discard')})` : ''}{l.shut ? ' (shut down)' : l.down ? ' (down)' : ''}</>)],
                    (of.evidence_for ?? []).length > 0 && ['Evidence for it', <Lines of={of.evidence_for ?? []} />],
                    (of.evidence_against ?? []).length > 0 && ['Evidence against it', <Lines of={of.evidence_against ?? []} />],
                    (of.second_opinions ?? []).length > 0 && ['Second sources', <Opinions of={of.second_opinions ?? []} />],
                    of.confidence !== undefined && ['Confidence', `${Math.round(of.confidence * 100)} %`],
                    of.advice !== undefined && ['To do', of.advice],
                ]} />
            </details>
        </article>
    );
}

/** Of one job, now: no diagnosis is kept for moments before. */
export function DiagnosesOf({ job }: { job: string }): JSX.Element | null {
    const { at } = useStore();
    const asked = useAnswer<Answer<Diagnosis>>(at === undefined ? 'diagnoses' : '', { job });
    const found = at === undefined ? asked.answer?.records ?? [] : [];
    if (at !== undefined) return null;
    return (
        <Section title="Diagnosis">
            {found.length === 0 ? <Empty>{asked.refusal || (asked.answer ? 'No rank of it hangs or is slow.' : 'Asking …')}</Empty> : null}
            <div class="cards">{found.slice(0, SHOWN).map((d, i) => <DiagnosisCard key={diagnosisId(d)} of={d} open={i === 0} />)}</div>
            {found.length > SHOWN ? <p class="empty">{found.length - SHOWN} more are not shown.</p> : null}
        </Section>
    );
}
