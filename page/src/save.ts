// SPDX-License-Identifier: Apache-2.0
// A table as a file: CSV for a sheet, JSON for a program. Pure.
import { day, hours } from './text.ts';

export type Value = string | number | undefined;

/** Text that a sheet would take for a formula does not begin as one: it comes from the network. */
function field(value: Value): string {
    if (value === undefined) return '';
    if (typeof value === 'number') return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/** RFC 4180. */
export function toCsv(head: string[], rows: Value[][]): string {
    return [head, ...rows].map((row) => `${row.map(field).join(',')}\r\n`).join('');
}

export function toJson(about: object, keys: string[], rows: Value[][]): string {
    const records = rows.map((row) => Object.fromEntries(keys.map((key, i) => [key, row[i]])));
    return `${JSON.stringify({ ...about, records }, undefined, 1)}\n`;
}

/** Of what, at which window: "lab-leaf1-Ethernet50-flows-20261128T031220.csv". */
export function fileName(parts: string[], ms: number | undefined, kind: string): string {
    const at = ms === undefined ? [] : [`${day(ms)}T${hours(ms)}`.replace(/[-:]/g, '')];
    const clean = (text: string) => text.replace(/[^A-Za-z0-9_.]+/g, '-').replace(/^[-.]+|-+$/g, '');
    return `${[...parts.map(clean), ...at].filter((p) => p !== '').join('-').slice(0, 120)}.${kind}`;
}
