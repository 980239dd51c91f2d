// SPDX-License-Identifier: Apache-2.0
// A view as plain text for the incident channel: headings, facts and tables in columns. Pure.

export type Block =
    | { kind: 'head'; text: string }
    | { kind: 'line'; text: string }
    | { kind: 'facts'; rows: [string, string][] }
    | { kind: 'table'; head: string[]; numeric: boolean[]; rows: string[][]; more: number };

const ROWS_MAX = 30;

function widths(rows: string[][]): number[] {
    const w: number[] = [];
    for (const row of rows)
        row.forEach((cell, i) => {
            w[i] = Math.max(w[i] ?? 0, [...cell].length);
        });
    return w;
}

function pad(text: string, width: number, right: boolean): string {
    const space = ' '.repeat(Math.max(0, width - [...text].length));
    return right ? space + text : text + space;
}

function table(b: Extract<Block, { kind: 'table' }>): string[] {
    const rows = b.rows.slice(0, ROWS_MAX);
    const all = [b.head.map((h) => h.toUpperCase()), ...rows];
    const w = widths(all);
    const lines = all.map((row) => row.map((cell, i) => pad(cell, w[i] ?? 0, b.numeric[i] ?? false)).join('  ').trimEnd());
    const left = b.rows.length - rows.length + b.more;
    return left > 0 ? [...lines, `... and ${left} more`] : lines;
}

export function toText(blocks: Block[]): string {
    const out: string[] = [];
    for (const b of blocks) {
        if (b.kind === 'head') out.push('', b.text);
        else if (b.kind === 'line') out.push(b.text);
        else if (b.kind === 'facts') {
            const w = Math.max(0, ...b.rows.map(([name]) => name.length));
            for (const [name, value] of b.rows) out.push(`  ${pad(name, w, false)}  ${value}`);
        } else out.push(...table(b).map((line) => `  ${line}`));
    }
    return `${out.join('\n').trim()}\n`;
}

/** What is read of it, without marks that stand beside words. */
export function said(element: Element): string {
    let from = element;
    if (element.querySelector('[data-nocopy]')) {
        from = element.cloneNode(true) as Element;
        for (const mark of from.querySelectorAll('[data-nocopy]')) mark.remove();
    }
    return (from.textContent ?? '').replace(/\s+/g, ' ').trim();
}

function shown(element: Element): boolean {
    return !element.closest('[data-nocopy],[hidden]');
}

function tableOf(t: Element): Block {
    const heads = [...t.querySelectorAll('thead th')];
    const rows = [...t.querySelectorAll('tbody tr')].filter(shown);
    return {
        kind: 'table',
        head: heads.map((h) => said(h).replace(/[▲▼]/g, '').trim()),
        numeric: heads.map((h) => h.classList.contains('num')),
        rows: rows.map((r) => [...r.children].map(said)),
        more: Number(t.getAttribute('data-more') ?? 0),
    };
}

/** What stands in a view, in order. */
export function blocksOf(root: Element): Block[] {
    const blocks: Block[] = [];
    for (const e of root.querySelectorAll('h1,h2,h3,p,dl,table,li,[data-copy]')) {
        if (!shown(e) || e.parentElement?.closest('table,[data-copy]')) continue;
        const copy = e.getAttribute('data-copy');
        if (copy !== null) blocks.push({ kind: 'line', text: copy });
        else if (/^H[123]$/.test(e.tagName)) blocks.push({ kind: 'head', text: said(e) });
        else if (e.tagName === 'TABLE') blocks.push(tableOf(e));
        else if (e.tagName === 'DL')
            blocks.push({
                kind: 'facts',
                rows: [...e.querySelectorAll('dt')].map((dt) => [said(dt), dt.nextElementSibling ? said(dt.nextElementSibling) : '']),
            });
        else if (said(e) && !e.parentElement?.closest('li')) blocks.push({ kind: 'line', text: said(e) });
    }
    return blocks;
}
