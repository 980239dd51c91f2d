// SPDX-License-Identifier: Apache-2.0
// The links between two tiers as a matrix on a canvas, once for each direction: legible where a
// drawing is not. The longer side lies along the wider one of the screen. Parts of a layer without a
// link between them (pods, planes) stand side by side, so that no room goes to links that there are
// not. Down is a cross or a full block in the colour of text, unseen is hatched, idle a dot; ticks at
// the edge name their switches.
import type { JSX } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useDark, useWidth } from './hooks.ts';
import { partsOf, type Layer, type LinkState, type Way } from './model.ts';
import { palette, STEPS } from './scale.ts';
import { clean } from './text.ts';
import { go, useHref } from './ui.tsx';
import { level, sentence, type Measure } from './wayinfo.ts';

const LABEL_W = 74;
const LABEL_H = 18;
const TICK = 6;

interface Cell {
    way: Way;
    more: number;
}

interface Grid {
    /** Names; an empty one lies between two parts. */
    across: string[];
    /** Names, or with several parts numbers: each part has its own there. */
    along: string[];
    /** cells[along][across] */
    cells: (Cell | undefined)[];
    /** Where each part begins. */
    starts: number[];
}

const RANK: Record<LinkState, number> = { down: 4, used: 3, unseen: 2, shut: 1, idle: 0 };

/** Of parallel links a cell shows the worst. */
function worse(a: Way, b: Way): boolean {
    return RANK[a.state] > RANK[b.state] || (a.state === b.state && (a.use ?? 0) > (b.use ?? 0));
}

function gridOf(layer: Layer, up: boolean, wide: boolean): Grid {
    const rowsAcross = wide === layer.rows.length >= layer.columns.length;
    const across: string[] = [];
    const starts: number[] = [];
    const x = new Map<string, number>();
    const y = new Map<string, number>();
    let along: string[] = [];
    const parts = partsOf(layer);
    for (const part of parts) {
        const names = rowsAcross ? part.columns : part.rows;
        if (starts.length > 0) across.push('');
        starts.push(across.length);
        for (const name of rowsAcross ? part.rows : part.columns) x.set(name, across.push(name) - 1);
        names.forEach((name, k) => y.set(name, k));
        if (names.length > along.length) along = names;
    }
    if (parts.length > 1) along = along.map((_, k) => String(k + 1));
    const cells: (Cell | undefined)[] = new Array<Cell | undefined>(across.length * along.length);
    for (const cable of layer.cables) {
        const way = up ? cable.up : cable.down;
        if (!way) continue;
        const i = x.get(rowsAcross ? cable.low : cable.high) ?? 0;
        const k = y.get(rowsAcross ? cable.high : cable.low) ?? 0;
        const index = k * across.length + i;
        const there = cells[index];
        if (!there) cells[index] = { way, more: 0 };
        else cells[index] = { way: worse(way, there.way) ? way : there.way, more: there.more + 1 };
    }
    return { across, along, cells, starts };
}

interface Size {
    w: number;
    h: number;
    width: number;
    height: number;
}

function sizeOf(grid: Grid, space: number): Size {
    const fits = (space - LABEL_W - 2) / Math.max(1, grid.across.length);
    const w = Math.max(1, fits > 6 ? Math.min(26, Math.floor(fits)) : fits);
    const ideal = grid.across.length > grid.along.length ? Math.floor(260 / Math.max(1, grid.along.length)) : 26;
    const h = Math.max(4, Math.min(22, ideal, Math.max(w, grid.starts.length > 1 ? 12 : 8)));
    return { w, h, width: Math.ceil(LABEL_W + w * grid.across.length) + 2, height: LABEL_H + TICK + h * grid.along.length + 1 };
}

interface Look {
    text: string;
    muted: string;
    paper: string;
    trouble: string;
    font: string;
}

function lookOf(e: Element): Look {
    const style = getComputedStyle(e);
    const of = (name: string) => style.getPropertyValue(name).trim();
    return { text: of('--text'), muted: of('--muted'), paper: of('--paper'), trouble: of('--bad'), font: `11px ${style.fontFamily}` };
}

/** x, y, w and h are whole pixels. */
function drawCell(c: CanvasRenderingContext2D, cell: Cell, x: number, y: number, w: number, h: number, gap: number, measure: Measure,
    colours: string[], look: Look): void {
    const { state } = cell.way;
    const at = level(cell.way, measure);
    if (at !== undefined) {
        c.fillStyle = colours[Math.round(at * (STEPS - 1))] ?? look.muted;
        c.fillRect(x, y, w - gap, h - gap);
    } else if (state === 'down') {
        c.fillStyle = look.text;
        if (w < 6 || h < 6) {
            c.fillRect(x, y, Math.max(1, w - gap), h - gap);
            return;
        }
        c.strokeStyle = look.trouble;
        c.lineWidth = 2;
        c.beginPath();
        c.moveTo(x + 1, y + 1);
        c.lineTo(x + w - 2, y + h - 2);
        c.moveTo(x + w - 2, y + 1);
        c.lineTo(x + 1, y + h - 2);
        c.stroke();
    } else if (state === 'shut') {
        c.strokeStyle = look.muted;
        c.lineWidth = 1;
        c.beginPath();
        c.moveTo(x + 1, y + h - gap - 1);
        c.lineTo(x + w - gap - 1, y + 1);
        c.stroke();
    } else if (state === 'unseen') {
        c.fillStyle = look.muted;
        for (let k = 0; k < h - gap; k += 3) c.fillRect(x, y + k, Math.max(1, w - gap), 1);
    } else {
        c.fillStyle = look.muted;
        const r = w > 8 ? 2 : 1;
        c.fillRect(x + (w - gap - r) / 2, y + (h - gap - r) / 2, r, r);
    }
}

function drawLabels(c: CanvasRenderingContext2D, grid: Grid, s: Size, look: Look): void {
    c.font = look.font;
    c.fillStyle = look.muted;
    c.textBaseline = 'middle';
    c.textAlign = 'right';
    const every = Math.ceil(13 / s.h);
    grid.along.forEach((name, k) => {
        if (k % every === 0) c.fillText(clean(name), LABEL_W - 8, LABEL_H + TICK + (k + 0.5) * s.h, LABEL_W - 10);
    });
    c.textAlign = 'left';
    const widest = Math.max(0, ...grid.across.map((n) => c.measureText(clean(n)).width));
    const step = Math.max(1, Math.ceil((widest + 10) / s.w));
    let free = 0;
    grid.across.forEach((name, i) => {
        const here = grid.starts.length > 1 ? grid.starts.includes(i) && i >= free : i % step === 0;
        if (!here || i * s.w + widest > grid.across.length * s.w) return;
        c.fillText(clean(name), LABEL_W + i * s.w, LABEL_H / 2);
        free = i + step;
    });
}

/** A tick at the edge for each row and column with a link that is down or not seen. */
function drawTicks(c: CanvasRenderingContext2D, grid: Grid, s: Size, look: Look): void {
    grid.cells.forEach((cell, index) => {
        if (!cell || (cell.way.state !== 'down' && cell.way.state !== 'unseen')) return;
        const i = index % grid.across.length;
        const k = Math.floor(index / grid.across.length);
        c.fillStyle = cell.way.state === 'down' ? look.trouble : look.muted;
        const x = LABEL_W + (i + 0.5) * s.w;
        c.beginPath();
        c.moveTo(x - 3, LABEL_H);
        c.lineTo(x + 3, LABEL_H);
        c.lineTo(x, LABEL_H + TICK - 1);
        c.fill();
        const y = LABEL_H + TICK + (k + 0.5) * s.h;
        c.beginPath();
        c.moveTo(LABEL_W - 6, y - 3);
        c.lineTo(LABEL_W - 6, y + 3);
        c.lineTo(LABEL_W - 1, y);
        c.fill();
    });
}

function paint(canvas: HTMLCanvasElement, grid: Grid, s: Size, measure: Measure, dark: boolean, cursor: number): void {
    const dots = devicePixelRatio || 1;
    canvas.width = Math.round(s.width * dots);
    canvas.height = Math.round(s.height * dots);
    canvas.style.width = `${s.width}px`;
    canvas.style.height = `${s.height}px`;
    const c = canvas.getContext('2d');
    if (!c) return;
    const look = lookOf(canvas);
    const colours = palette(dark);
    c.scale(dots, dots);
    c.clearRect(0, 0, s.width, s.height);
    drawLabels(c, grid, s, look);
    const n = grid.across.length;
    const gap = s.w > 5 && s.h > 5 ? 1 : 0;
    grid.cells.forEach((cell, index) => {
        if (!cell) return;
        const from = Math.round(LABEL_W + (index % n) * s.w);
        const to = Math.round(LABEL_W + ((index % n) + 1) * s.w);
        drawCell(c, cell, from, LABEL_H + TICK + Math.floor(index / n) * s.h, Math.max(1, to - from), s.h, gap, measure, colours, look);
    });
    drawTicks(c, grid, s, look);
    if (cursor >= 0) {
        const x = LABEL_W + (cursor % n) * s.w;
        const y = LABEL_H + TICK + Math.floor(cursor / n) * s.h;
        c.strokeStyle = look.text;
        c.lineWidth = 1.5;
        c.strokeRect(x - 1.5, y - 1.5, s.w + 2, s.h + 2);
    }
}

function moveCursor(grid: Grid, cursor: number, key: string): number {
    const n = grid.across.length;
    const at = Math.max(0, cursor);
    const i = at % n;
    const k = Math.floor(at / n);
    // Over what lies between two parts.
    const beside = (by: number) => (grid.across[i + by] === '' ? i + 2 * by : i + by);
    switch (key) {
    case 'ArrowLeft':
        return k * n + Math.max(0, beside(-1));
    case 'ArrowRight':
        return k * n + Math.min(n - 1, beside(1));
    case 'ArrowUp':
        return Math.max(0, k - 1) * n + i;
    case 'ArrowDown':
        return Math.min(grid.along.length - 1, k + 1) * n + i;
    case 'Home':
        return k * n;
    case 'End':
        return k * n + n - 1;
    default:
        return cursor;
    }
}

function Direction({ layer, told, up, measure, mark, space }: {
    layer: Layer; told: object; up: boolean; measure: Measure; mark: (text: string) => void; space: number;
}): JSX.Element {
    const dark = useDark();
    const href = useHref();
    const canvas = useRef<HTMLCanvasElement>(null);
    const [cursor, setCursor] = useState(-1);
    const grid = useMemo(() => gridOf(layer, up, space > 620), [layer, told, up, space > 620]);
    const size = sizeOf(grid, space);
    useLayoutEffect(() => {
        if (canvas.current && space > 0) paint(canvas.current, grid, size, measure, dark, cursor);
    }, [grid, told, space, measure, dark, cursor]);
    const said = (index: number) => {
        const cell = grid.cells[index];
        const across = grid.across[index % grid.across.length];
        if (!cell && (index < 0 || !across)) return '';
        if (!cell) return clean(grid.starts.length > 1 ? `${across}: no link` : `${grid.along[Math.floor(index / grid.across.length)]} and ${across}: no link`);
        return `${sentence(cell.way)}${cell.more ? `, the worst of ${cell.more + 1}` : ''}`;
    };
    const choose = (index: number) => {
        setCursor(index);
        mark(said(index));
    };
    const open = (index: number) => {
        const way = grid.cells[index]?.way;
        if (way) go(href('link', [way.switch, way.port]));
    };
    const under = (e: MouseEvent) => {
        const box = (e.currentTarget as Element).getBoundingClientRect();
        const i = Math.floor((e.clientX - box.left - LABEL_W) / size.w);
        const k = Math.floor((e.clientY - box.top - LABEL_H - TICK) / size.h);
        return i >= 0 && k >= 0 && i < grid.across.length && k < grid.along.length ? k * grid.across.length + i : -1;
    };
    const name = up ? `${layer.low} to ${layer.high}` : `${layer.high} to ${layer.low}`;
    return (
        <figure class="matrix">
            <figcaption>{name}{grid.starts.length > 1 ? `: ${grid.starts.length} separate parts (pods or planes) side by side; numbers count the switches of each` : ''}</figcaption>
            <div class="matrix-frame" tabIndex={0} role="application" aria-label={`Links from ${name}: arrows go from link to link, Enter opens`}
                onKeyDown={(e) => {
                    if (e.key === 'Enter') open(cursor);
                    else if (/^(Arrow|Home|End)/.test(e.key)) {
                        choose(moveCursor(grid, cursor, e.key));
                        e.preventDefault();
                    }
                }}
                onFocus={() => { if (cursor < 0) choose(0); }} onBlur={() => choose(-1)}>
                <canvas ref={canvas} aria-hidden="true" onMouseMove={(e) => choose(under(e))} onMouseLeave={() => choose(-1)}
                    onClick={(e) => open(under(e))} />
            </div>
        </figure>
    );
}

/** told: another object whenever the layer's ways have been told anew. */
export function Matrix({ layer, told, measure, mark }: {
    layer: Layer; told: object; measure: Measure; mark: (text: string) => void;
}): JSX.Element {
    const [frame, space] = useWidth<HTMLDivElement>();
    return (
        <div ref={frame} class="matrices">
            <Direction layer={layer} told={told} up measure={measure} mark={mark} space={space} />
            <Direction layer={layer} told={told} up={false} measure={measure} mark={mark} space={space} />
        </div>
    );
}
