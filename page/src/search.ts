// SPDX-License-Identifier: Apache-2.0
// What a person means by a few letters: a switch, a port, a host, an address, a job, a flow. Pure.
import { byName } from './model.ts';
import type { Rank, Topology } from './records.ts';
import type { Route } from './route.ts';
import { looksLikeFlow } from './text.ts';

export interface Entry {
    kind: 'switch' | 'link' | 'host' | 'address' | 'job' | 'flow';
    text: string;
    /** Said beside it. */
    of: string;
    view: Route['view'];
    names: string[];
}

export function entriesOf(topology: Topology, ranks: Rank[]): Entry[] {
    const found: Entry[] = [];
    for (const s of topology.switches ?? []) {
        found.push({ kind: 'switch', text: s.name, of: s.tier ?? '', view: 'switch', names: [s.name] });
        for (const a of s.addresses ?? [])
            found.push({ kind: 'address', text: a, of: s.name, view: 'switch', names: [s.name] });
        for (const p of s.ports ?? [])
            if (p.peer)
                found.push({ kind: 'link', text: `${s.name} ${p.name}`, of: `to ${p.peer}`, view: 'link', names: [s.name, p.name] });
    }
    for (const h of topology.hosts ?? []) {
        found.push({ kind: 'host', text: h.name, of: h.nics?.[0]?.attach?.[0]?.switch ?? '', view: 'host', names: [h.name] });
        for (const nic of h.nics ?? [])
            for (const a of nic.addresses ?? [])
                found.push({ kind: 'address', text: a, of: h.name, view: 'host', names: [h.name] });
    }
    for (const job of new Set(ranks.map((r) => r.job ?? '').filter((j) => j !== '')))
        found.push({ kind: 'job', text: job, of: 'job', view: 'job', names: [job] });
    return found;
}

/** The best few: what is called so, then what begins so, then what holds every word. */
export function find(entries: Entry[], query: string, max: number): Entry[] {
    const q = query.trim().toLowerCase();
    if (!q) return [];
    const parts = q.split(/[\s/]+/);
    const ranked: { entry: Entry; rank: number }[] = [];
    if (looksLikeFlow(q))
        ranked.push({ entry: { kind: 'flow', text: query.trim(), of: 'flow', view: 'flow', names: [query.trim()] }, rank: -1 });
    for (const entry of entries) {
        const text = entry.text.toLowerCase();
        if (!parts.every((p) => text.includes(p))) continue;
        // A link is meant only by its port.
        const rank = (text === q ? 0 : text.startsWith(q) ? 1 : 2) + (entry.kind === 'link' ? 3 : 0);
        ranked.push({ entry, rank });
    }
    ranked.sort((a, b) => a.rank - b.rank || a.entry.text.length - b.entry.text.length || byName(a.entry.text, b.entry.text));
    return ranked.slice(0, max).map((r) => r.entry);
}
