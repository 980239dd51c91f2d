// SPDX-License-Identifier: Apache-2.0
// Figures and names as people read them. Pure.
import type { Flow, Hop, Member, Path } from './records.ts';

const ROCE_PORT = 4791;
const UDP = 17;

// What could move a cursor, turn a line around or hide: C0, C1, format and direction marks.
// eslint-disable-next-line no-control-regex
const HARMFUL = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** Text from the network with every control character made visible. */
export function clean(text: string): string {
    return text.replace(HARMFUL, (c) => {
        const code = c.charCodeAt(0);
        if (code < 0x20) return String.fromCharCode(0x2400 + code);
        return `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`;
    });
}

/** Three significant digits. */
function figure(value: number): string {
    const size = Math.abs(value);
    if (size >= 99.95) return value.toFixed(0);
    if (size >= 9.995) return value.toFixed(1);
    return value.toFixed(2);
}

function scaled(value: number, units: string[], step: number): string {
    let unit = 0;
    let v = value;
    while (Math.abs(v) >= step * 0.9995 && unit < units.length - 1) {
        v /= step;
        unit++;
    }
    return `${unit === 0 && Number.isInteger(v) ? v : figure(v)} ${units[unit]}`;
}

export const NONE = '–';

export function rate(bps: number | undefined): string {
    return bps === undefined ? NONE : scaled(bps, ['b/s', 'kb/s', 'Mb/s', 'Gb/s', 'Tb/s'], 1000);
}

export function bytes(n: number | undefined): string {
    return n === undefined ? NONE : scaled(n, ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], 1000);
}

export function nanoseconds(ns: number | undefined): string {
    return ns === undefined ? NONE : scaled(ns, ['ns', 'µs', 'ms', 's'], 1000);
}

export function count(n: number | undefined): string {
    if (n === undefined) return NONE;
    const whole = Number.isInteger(n) ? String(n) : n.toFixed(1);
    return whole.replace(/\B(?=(\d{3})+(?!\d)(?=\.|$))/g, '\u202f');
}

export function percent(share: number | undefined): string {
    if (share === undefined) return NONE;
    const p = share * 100;
    if (p === 0) return '0 %';
    if (p < 0.1) return '<0.1 %';
    return `${p >= 99.5 || Number.isInteger(p) ? p.toFixed(0) : p.toFixed(1)} %`;
}

export function ratio(value: number | undefined): string {
    return value === undefined ? NONE : value.toFixed(2);
}

export function tenth(value: number | undefined): string {
    return value === undefined ? NONE : value.toFixed(1);
}

export function probability(p: number | undefined): string {
    if (p === undefined) return NONE;
    if (p < 1e-6) return '<1e-6';
    if (p < 0.001) return p.toExponential(0);
    return p < 0.1 ? p.toFixed(3) : p.toFixed(2);
}

function two(n: number): string {
    return String(n).padStart(2, '0');
}

/** Hours, minutes and seconds here. */
export function hours(ms: number): string {
    const d = new Date(ms);
    return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** The day here. */
export function day(ms: number): string {
    const d = new Date(ms);
    return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

/** Hours, minutes and seconds here; with the day where it is not today's. */
export function clock(ms: number | undefined, now: number = Date.now()): string {
    if (ms === undefined) return NONE;
    return day(ms) === day(now) ? hours(ms) : `${day(ms)} ${hours(ms)}`;
}

/** From one to the other; the day once where it is the same one. */
export function between(from: number, to: number, now: number = Date.now()): string {
    return `${clock(from, now)} to ${day(from) === day(to) ? hours(to) : clock(to, now)}`;
}

/** How far the clock here is from UTC at that moment: "+01:00". */
export function zone(ms: number): string {
    const east = -new Date(ms).getTimezoneOffset();
    return `${east < 0 ? '-' : '+'}${two(Math.floor(Math.abs(east) / 60))}:${two(Math.abs(east) % 60)}`;
}

/** With day and zone, for who reads it elsewhere: "2026-11-28 03:12:20 +01:00". */
export function stamp(ms: number): string {
    return `${day(ms)} ${hours(ms)} ${zone(ms)}`;
}

/** How long ago, coarsely: "40 s", "12 min", "3 h", "2 days". */
export function age(ms: number): string {
    const s = Math.max(0, Math.round(ms / 1000));
    if (s < 100) return `${s} s`;
    if (s < 100 * 60) return `${Math.round(s / 60)} min`;
    if (s < 48 * 3600) return `${Math.round(s / 3600)} h`;
    return `${Math.round(s / 86400)} days`;
}

function end(address: string, port: string): string {
    return `${address.includes(':') ? `[${address}]` : address}${port}`;
}

/** As a person and the tool write it and /api/v1/explain reads it. */
export function flowText(flow: Flow): string {
    const proto = flow.proto === UDP || flow.proto === undefined ? '' : `/${flow.proto}`;
    return `${end(flow.src, `:${flow.sport}`)}-${end(flow.dst, flow.dport === ROCE_PORT ? '' : `:${flow.dport}`)}${proto}`;
}

/** The key of its path records. */
export function flowKey(flow: Flow): string {
    return [flow.src, flow.dst, flow.sport, flow.dport, flow.proto].join(',');
}

/** Whether a person means a flow by that. */
export function looksLikeFlow(text: string): boolean {
    return /^\[?[0-9a-f.:]+\]?:\d+-\[?[0-9a-f.:]+\]?(:\d+)?(\/\d+)?$/i.test(text.trim()) || /^[0-9a-f.:]+,[0-9a-f.:]+,\d+,\d+,\d+$/i.test(text.trim());
}

export function hopsText(hops: Hop[] | undefined): string {
    if (!hops || hops.length === 0) return NONE;
    return hops
        .map((h) => `${h.switch ?? '?'}${h.out || h.out_lag ? ` ${h.out ?? h.out_lag}` : ''}`)
        .join(' › ');
}

export function plural(n: number, one: string, many: string = `${one}s`): string {
    return `${count(n)} ${n === 1 ? one : many}`;
}

/** "link_down" as words. */
export function words(name: string | undefined): string {
    return (name ?? '').replace(/_/g, ' ');
}

const REASONS: Record<string, string> = {
    ambiguous: 'samples leave several paths',
    changing: 'the change of its path is not complete',
    unconfirmed: 'a link of the path was sampled at one end only',
    few_samples: 'others here take several paths, and it has few samples',
    no_samples: 'no switch has sampled it lately',
    unknown_switch: 'only switches that the topology does not know have sampled it',
    no_route: 'the topology has no path between its hosts',
    off_path: 'it was sampled where none of its equal-cost paths leads',
    several_networks: 'flows of several networks have its 5-tuple',
};

/** Why a path is not resolved, as `fabrictrace explain` says it; '' where the record has no reason. */
export function whyNot(path: Path): string {
    if (path.reason === 'unknown_source') return `the topology does not know ${path.flow?.src ?? 'its source'}`;
    if (path.reason === 'unknown_destination') return `the topology does not know ${path.flow?.dst ?? 'its destination'}`;
    if (path.reason === 'several_networks' && path.vni !== undefined && path.other_vni !== undefined)
        return `flows of VNI ${path.vni} and of VNI ${path.other_vni} have its 5-tuple`;
    return REASONS[path.reason ?? ''] ?? path.reason ?? '';
}

/** What the sums of a communicator's transfers lack; '' where it is nothing. */
export function notInSums(members: Member[] | undefined): string {
    const of = (members ?? []).filter((m) => (m.transfers_dropped ?? 0) > 0);
    const transfers = of.reduce((sum, m) => sum + (m.transfers_dropped ?? 0), 0);
    const sum = of.reduce((total, m) => total + (m.bytes_dropped ?? 0), 0);
    return of.length === 0 ? '' : `; not in them: ${plural(transfers, 'transfer')} of ${plural(of.length, 'rank')}, ${bytes(sum)} sent and received, as the lists of their agents were full`;
}
