// SPDX-License-Identifier: Apache-2.0
// How a job's flows spread over the links that they could take and when it sends, and how a switch
// chooses among the links of a group: what is known of it without asking the switch.
import type { JSX } from 'preact';
import { useAnswer, useStore } from '../hooks.ts';
import type { Answer, Hash, Rhythm, Spread } from '../records.ts';
import { bytes, count, percent, plural, probability, tenth } from '../text.ts';
import { Table } from '../table.tsx';
import { Facts, GroupLink, PortLink, Section } from '../ui.tsx';

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** Of one job, now; undefined where no flow of it was sampled. */
export function useRhythm(job: string): Rhythm | undefined {
    const { at } = useStore();
    const asked = useAnswer<Answer<Rhythm>>(job && at === undefined ? 'rhythms' : '', { job });
    return at === undefined ? asked.answer?.records.find((x) => x.job === job) : undefined;
}

/** When it sends, in words. */
export function rhythmText(r: Rhythm): string {
    const period = r.period_ms === undefined
        ? `no period is known: its traffic does not repeat, or more often than every ${seconds(2.5 * (r.resolution_ms ?? 0))}`
        : `an exchange every ${seconds(r.period_ms)}${r.regularity === undefined ? '' : `, regularity ${r.regularity.toFixed(2)} of 1`}`;
    const part = r.exchange === undefined ? '' : `; sends ${percent(r.exchange)} of the time`;
    return `${period}${part}, by the samples of its flows`;
}

/** What its flows sent in the window; a fact each, where it is known. */
export function sentFacts(r: Rhythm): [string, string][] {
    const facts: [string, string][] = [], length = ((r.window_end_ms ?? 0) - (r.window_start_ms ?? 0)) / 1000;
    const each = length > 0 ? (r.messages ?? 0) / length : 0;
    if (each > 0 && r.messages !== undefined && r.message_bytes !== undefined)
        facts.push(['Messages', `${each < 10 ? tenth(each) : count(Math.round(each))} a second, about ${bytes(r.message_bytes / r.messages)} each`]);
    if (r.psn_back_samples !== undefined && r.psn_back_samples > 0)
        facts.push(['Sent again or overtaken', `${count(r.psn_back_samples)} of ${count(r.numbered_samples ?? 0)} samples`]);
    if (r.nak_samples !== undefined || r.rnr_samples !== undefined)
        facts.push(['Samples that refuse', `${count(r.nak_samples ?? 0)} negative, ${count(r.rnr_samples ?? 0)} not ready`]);
    if (r.no_credit_samples !== undefined)
        facts.push(['Samples without credits', `${count(r.no_credit_samples)} acknowledgements`]);
    return facts;
}

/** Over all tiers, with its interval; only where the job enters the fabric. */
function endToEnd(s: Spread): string {
    if (s.end_to_end_paths === undefined || s.end_to_end_lo === undefined || s.end_to_end_hi === undefined) return '';
    return `${tenth(s.end_to_end_paths)} (${tenth(s.end_to_end_lo)} to ${tenth(s.end_to_end_hi)})`;
}

/** A link that takes nothing is named where chance does not explain it. */
function Least({ of }: { of: Spread }): JSX.Element {
    const dead = of.dead ?? [];
    if (dead.length > 0) return <>{dead.map((p, i) => <>{i ? ', ' : ''}<PortLink sw={of.switch ?? ''} port={p} /></>)} without a sample, p {probability(of.least_p)}</>;
    if (of.least === undefined || (of.least_p ?? 1) >= 0.001) return <>none beyond chance</>;
    return <><PortLink sw={of.switch ?? ''} port={of.least} />, p {probability(of.least_p)}</>;
}

/** Of one job in the last window. */
export function SpreadOf({ job }: { job: string }): JSX.Element | null {
    const { at } = useStore();
    const asked = useAnswer<Answer<Spread>>(at === undefined ? 'spread' : '', { of: 'job', job });
    const found = at === undefined ? asked.answer?.records ?? [] : [];
    if (found.length === 0) return null;
    return (
        <Section title="How it spreads over equal-cost links">
            <Table id="spread" label="Spread of the job at each group" rows={found} rowKey={(s) => s.group ?? ''} sort="even" columns={[
                { key: 'group', title: 'Group', cell: (s) => <GroupLink name={s.group ?? ''} />, by: (s) => s.group },
                { key: 'flows', title: 'Flows', num: true, minor: true, cell: (s) => `${count(s.flows)}${s.sprayed_flows ? `, ${count(s.sprayed_flows)} sprayed` : ''}`, by: (s) => s.flows },
                { key: 'links', title: 'Links used', num: true, cell: (s) => `${count(s.seen)} of ${count(s.possible)}`, by: (s) => s.seen },
                { key: 'effective', title: 'Links in effect', num: true, minor: true, cell: (s) => tenth(s.effective_paths), by: (s) => s.effective_paths },
                { key: 'whole', title: 'Paths end to end', num: true, minor: true, cell: endToEnd, by: (s) => s.end_to_end_paths },
                { key: 'even', title: 'p', num: true, cell: (s) => probability(s.even_p), by: (s) => s.even_p },
                { key: 'least', title: 'Avoided link', cell: (s) => <Least of={s} />, by: (s) => s.least_p },
                { key: 'samples', title: 'Samples', num: true, minor: true, cell: (s) => count(s.samples), by: (s) => s.samples },
            ]} />
            <p class="note">p: how often an even choice of links is at least as uneven by chance. Paths end to end: used in effect from this group to the destinations, over all tiers, with a 95 % interval.</p>
        </Section>
    );
}

const MODELS: Record<string, string> = {
    unknown: 'not known',
    linear: 'a linear hash of the header: links of new flows can be predicted',
    table: 'not linear: only the links of flows that were seen are known',
};

const INPUTS: Record<string, string> = {
    src: 'source address', dst: 'destination address', sport: 'source port', entry: 'port of entry',
    outer_src: "tunnel's source address", outer_dst: "tunnel's destination address", outer_sport: "tunnel's source port",
};

const REASONS: Record<string, string> = {
    few_flows: 'too few flows were seen',
    few_values: 'too few values of a part of the header were seen, which may choose by another hash',
    few_predicted: 'too few flows that the model did not know were held against it',
    wrong: 'more than 1 % of the flows that the model did not know were on another link',
    few_agree: 'too few flows are as the model says',
    queue_pairs: 'nothing shows that the destination queue pair is not hashed, too',
    contradicted: 'flows of late were on another link than the model says',
};

const inputs = (names?: string[]) => (names ?? []).map((i) => INPUTS[i] ?? i).join(', ');

/** Why links of new flows are not predicted; how much more it takes is a bound. */
function notPredicted(h: Hash): string {
    const of = (h.few_of ?? []).length > 0 ? `: ${inputs(h.few_of)}` : '';
    const what = h.reason === 'few_values' ? 'value' : 'flow';
    const more = h.more_least === undefined ? '' : `; at least ${plural(h.more_least, `more ${what}`)} needed`;
    return `${REASONS[h.reason ?? ''] ?? h.reason ?? ''}${of}${more}`;
}

/** Of one group, as it is known now. */
export function HashOf({ group }: { group: string }): JSX.Element | null {
    const asked = useAnswer<Answer<Hash>>(group ? 'hashes' : '', { group });
    const found = asked.answer?.records ?? [];
    if (found.length === 0) return null;
    return (
        <Section title="How the switch chooses">
            {found.map((h) => (
                <Facts key={(h.members ?? []).join()} of={[
                    ['Members', (h.members ?? []).join(', ') || 'not known'],
                    ['Choice', MODELS[h.model ?? ''] ?? h.model ?? 'not known'],
                    (h.inputs ?? []).length > 0 && ['Depends on', inputs(h.inputs)],
                    h.reason !== undefined && ['Not used to predict', notPredicted(h)],
                    h.accuracy !== undefined && ['Predicted', `${percent(h.accuracy)} of ${plural(h.predicted ?? 0, 'flow')} rightly`],
                    h.effective_links !== undefined && h.effective_by_chance !== undefined && ['Even, given the port of entry',
                        `${h.effective_links.toFixed(1)} of ${plural((h.members ?? []).length, 'link')}; by chance ${h.effective_by_chance.toFixed(1)}`],
                    (h.never_chosen ?? []).length > 0 && ['Never chosen', h.never_chosen?.map((p, i) => <>{i ? ', ' : ''}<PortLink sw={h.switch ?? ''} port={p} /></>)],
                    h.observations !== undefined && ['Learnt from', plural(h.observations, 'flow')],
                ]} />
            ))}
        </Section>
    );
}
