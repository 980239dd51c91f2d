// SPDX-License-Identifier: Apache-2.0
// Tables: sorted by the heads of their columns, searched, saved; on a phone a row opens to what has no room in it.
import { render, type ComponentChildren, type JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { said } from './copytext.ts';
import { useMedia, useStore } from './hooks.ts';
import { byName } from './model.ts';
import { store } from './store.ts';
import { fileName, toCsv, toJson, type Value } from './save.ts';
import { clean, count, NONE } from './text.ts';
import { change, Empty } from './ui.tsx';

export interface Column<R> {
    key: string;
    title: string;
    num?: boolean;
    /** In a row that opens, where there is little room. */
    minor?: boolean;
    cell: (row: R) => ComponentChildren;
    /** What it is sorted by; without it it is not. Of a column of figures it is what a file has. */
    by?: (row: R) => number | string | undefined;
    /** Of the figures in a file, where the title has none. */
    unit?: string;
}

function compare(a: number | string | undefined, b: number | string | undefined): number {
    if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
    return typeof a === 'number' && typeof b === 'number' ? a - b : byName(String(a), String(b));
}

function sorted<R>(rows: R[], by: Column<R>['by'], descends: boolean): R[] {
    if (!by) return rows;
    return rows.slice().sort((a, b) => {
        const x = by(a);
        const y = by(b);
        return x === undefined || y === undefined ? compare(x, y) : compare(x, y) * (descends ? -1 : 1);
    });
}

/** Those with every word somewhere in what they are sorted by. */
function found<R>(rows: R[], columns: Column<R>[], query: string): R[] {
    const words = query.toLowerCase().split(/\s+/).filter((w) => w !== '');
    if (words.length === 0) return rows;
    return rows.filter((row) => {
        const text = columns.map((c) => c.by?.(row)).filter((v) => typeof v === 'string').join(' ').toLowerCase();
        return words.every((w) => text.includes(w));
    });
}

/** What a file has of rows: figures as they are, else what is read. */
function valuesOf<R>(rows: R[], columns: Column<R>[]): Value[][] {
    const isFigure = (c: Column<R>) => c.num === true && c.by !== undefined;
    const body = document.createElement('div');
    render(<>{rows.map((row, i) => <p key={i}>{columns.map((c) => <b key={c.key}>{isFigure(c) ? null : c.cell(row)}</b>)}</p>)}</>, body);
    const lines = [...body.children].map((line, i) => columns.map((c, k) => {
        if (isFigure(c)) return c.by?.(rows[i] as R);
        const text = said(line.children[k] as Element);
        return text === NONE ? '' : text;
    }));
    render(null, body);
    return lines;
}

function save<R>(kind: 'csv' | 'json', id: string, rows: R[], columns: Column<R>[], total: number): void {
    const { fabric, window: shown, route } = store.state;
    const values = valuesOf(rows, columns);
    const about = { fabric: fabric?.name ?? '', ...shown, view: [route.view, ...route.names], rows: rows.length, total };
    const text = kind === 'csv' ? toCsv(columns.map((c) => (c.unit ? `${c.title}, ${c.unit}` : c.title)), values) : toJson(about, columns.map((c) => c.key), values);
    const url = URL.createObjectURL(new Blob([text], { type: kind === 'csv' ? 'text/csv' : 'application/json' }));
    const a = document.createElement('a');
    a.href = url;
    a.download = fileName([fabric?.name ?? 'fabrictrace', ...route.names, id], shown?.window_start_ms, kind);
    a.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

const TYPED_MS = 150;

/** Typed words become a part of the address. */
function Find({ id, label, value }: { id: string; label: string; value: string }): JSX.Element {
    const field = useRef<HTMLInputElement>(null);
    const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
    useEffect(() => {
        if (field.current && field.current !== document.activeElement) field.current.value = value;
    }, [value]);
    useEffect(() => () => clearTimeout(timer.current), []);
    return (
        <label class="find">Find <input type="search" placeholder={label} ref={field} defaultValue={value} autocomplete="off" spellcheck={false} onInput={(e) => {
            const text = e.currentTarget.value.trim();
            clearTimeout(timer.current);
            timer.current = setTimeout(() => change({ [`find-${id}`]: text }, true), TYPED_MS);
        }} /></label>
    );
}

function classOf<R>(c: Column<R>): string {
    return `${c.num ? 'num' : ''} ${c.minor ? 'minor' : ''}`;
}

function Head<R>({ column: c, order, choose }: { column: Column<R>; order: string; choose: () => void }): JSX.Element {
    const descends = order === `-${c.key}`;
    const is = descends || order === c.key;
    return (
        <th scope="col" class={classOf(c)} aria-sort={is ? (descends ? 'descending' : 'ascending') : undefined}>
            {c.by ? <button type="button" onClick={choose}>{c.title}{is ? <span aria-hidden="true">{descends ? ' ▼' : ' ▲'}</span> : null}</button> : c.title}
        </th>
    );
}

/** A row; folded: what opens below it. */
function Row<R>({ row, columns, folded, of }: { row: R; columns: Column<R>[]; folded: Column<R>[]; of: string | undefined }): JSX.Element {
    const [open, setOpen] = useState(false);
    const isOpen = open && folded.length > 0;
    return (
        <>
            <tr class={`${of ?? ''} ${folded.length > 0 ? 'folds' : ''}`}>
                {columns.map((c, i) => (
                    <td key={c.key} class={classOf(c)}>
                        {i === 0 && folded.length > 0
                            ? <button type="button" class="unfold" aria-expanded={isOpen} aria-label="More of this row" onClick={() => setOpen(!open)} data-nocopy>{isOpen ? '▾' : '▸'}</button>
                            : null}
                        {c.cell(row)}
                    </td>
                ))}
            </tr>
            {isOpen
                ? <tr class="unfolded" data-nocopy><td colSpan={columns.length - folded.length}>
                    <dl class="facts">{folded.map((c) => <div key={c.key}><dt>{c.title}</dt><dd>{c.cell(row)}</dd></div>)}</dl>
                </td></tr>
                : null}
        </>
    );
}

const ROWS = 100;
/** Fewer are seen at a glance. */
const FIND_FROM = 9;

/** Figures begin with the largest. Order and words that are looked for are part of the address. total: how many there
 * are, where the daemon gave fewer; which these are, where that is known. find: what may be looked for; none: said
 * where there is no row; tools stand beside the field; plain: not worth a file. */
export function Table<R>(props: {
    id: string; label: string; columns: Column<R>[]; rows: R[]; rowKey: (row: R) => string; total?: number | undefined; which?: string;
    sort?: string; rowClass?: (row: R) => string; find?: string; none?: string; tools?: ComponentChildren; plain?: boolean;
}): JSX.Element {
    const { route } = useStore();
    const [shown, setShown] = useState(ROWS);
    const narrow = useMedia('(max-width: 700px)'); // as in page.css
    const param = `sort-${props.id}`;
    const order = route.params[param] ?? props.sort ?? '';
    const query = props.find ? route.params[`find-${props.id}`] ?? '' : '';
    const by = props.columns.find((c) => c.key === order.replace(/^-/, ''))?.by;
    const rows = sorted(found(props.rows, props.columns, query), by, order.startsWith('-'));
    const resort = (c: Column<R>) => {
        const first = c.num ? `-${c.key}` : c.key;
        change({ [param]: order === first ? (c.num ? c.key : `-${c.key}`) : first });
    };
    const { columns } = props;
    const folded = narrow ? props.columns.filter((c) => c.minor) : [];
    const visible = rows.slice(0, shown);
    const left = rows.length - visible.length;
    const beyond = Math.max(0, (props.total ?? props.rows.length) - props.rows.length);
    const finds = props.find !== undefined && (props.rows.length >= FIND_FROM || query !== '');
    const keep = (kind: 'csv' | 'json') => save(kind, props.id, rows, props.columns, props.total ?? rows.length);
    const table = (
        <div class="table-scroll" role="region" aria-label={props.label} tabIndex={0}>
            <table data-more={left + beyond}>
                <thead><tr>{columns.map((c) => <Head key={c.key} column={c} order={order} choose={() => resort(c)} />)}</tr></thead>
                <tbody>{visible.map((row) => <Row key={props.rowKey(row)} row={row} columns={columns} folded={folded} of={props.rowClass?.(row)} />)}</tbody>
            </table>
        </div>
    );
    return (
        <div class="table-frame">
            {finds || props.tools
                ? <div class="filters" data-nocopy>
                    {props.tools}
                    {finds ? <Find id={props.id} label={props.find ?? ''} value={query} /> : null}
                    {query ? <span role="status">{count(rows.length)} of {count(props.rows.length)}</span> : null}
                </div>
                : null}
            {rows.length > 0 ? table : <Empty>{query ? `None has ${clean(query)}.` : props.none ?? 'None.'}</Empty>}
            {left > 0 || beyond > 0 || (!props.plain && rows.length > 0)
                ? <p class="more">
                    {left > 0 ? <button type="button" onClick={() => setShown(shown + 5 * ROWS)} data-nocopy>Show {Math.min(left, 5 * ROWS)} more of {left}</button> : null}
                    {beyond > 0 ? <span>The daemon gave {count(props.rows.length)} of {count(props.total)}{props.which ? `: ${props.which}` : ''}.</span> : null}
                    {props.plain || rows.length === 0 ? null : <span class="save" data-nocopy>Save as <button type="button" onClick={() => keep('csv')}>CSV</button> <button type="button" onClick={() => keep('json')}>JSON</button></span>}
                </p>
                : null}
        </div>
    );
}
