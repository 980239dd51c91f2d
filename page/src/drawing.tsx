// SPDX-License-Identifier: Apache-2.0
// A small fabric, drawn: each direction of a link is a line of its own, coloured by load, as wide as
// its speed asks for. Down is broken and crossed, unseen dotted, idle thin with a ring: no state is
// told by colour alone. One stop of the keyboard: arrows go from line to line, Enter opens.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useDark, useWidth } from './hooks.ts';
import { type Cable, type Fabric, type Way } from './model.ts';
import { clean } from './text.ts';
import { go, useHref } from './ui.tsx';
import { colour, sentence, width, type Measure } from './wayinfo.ts';

interface Point {
    x: number;
    y: number;
}

const BOX_H = 26;
const TOP = 8;

interface Line {
    way: Way;
    a: Point;
    b: Point;
    wide: number;
}

function places(fabric: Fabric, space: number, hosts: boolean): { at: Map<string, Point>; box: number; height: number } {
    const tiers = fabric.tiers.filter((t) => t.switches.length > 0).slice().reverse();
    const widest = Math.max(1, ...tiers.map((t) => t.switches.length));
    const box = Math.max(30, Math.min(132, (space - 8) / widest - 8));
    const gap = Math.round(Math.min(220, Math.max(130, space * 0.2)));
    const at = new Map<string, Point>();
    tiers.forEach((tier, row) => {
        const step = space / tier.switches.length;
        tier.switches.forEach((name, i) => at.set(name, { x: step * (i + 0.5), y: TOP + BOX_H / 2 + row * gap }));
    });
    const rows = Math.max(1, tiers.length);
    return { at, box, height: TOP + BOX_H + (rows - 1) * gap + (hosts ? 30 : 8) };
}

/** Parallel cables lie side by side. */
function linesOf(cables: Cable[], at: Map<string, Point>): Line[] {
    const between = new Map<string, number>();
    const lines: Line[] = [];
    for (const c of cables) {
        const low = at.get(c.low);
        const high = at.get(c.high);
        if (!low || !high) continue;
        const pair = `${c.low}\n${c.high}`;
        const nth = between.get(pair) ?? 0;
        between.set(pair, nth + 1);
        const wide = width(c.up.speed);
        const aside = wide / 2 + 1.2 + nth * (2 * wide + 6);
        const same = low.y === high.y;
        const a = { x: low.x, y: low.y - (same ? 0 : BOX_H / 2) };
        const b = { x: high.x, y: high.y + (same ? 0 : BOX_H / 2) };
        const move = (p: Point, by: number) => ({ x: p.x + by, y: p.y });
        lines.push({ way: c.up, a: move(a, -aside), b: move(b, -aside), wide });
        if (c.down) lines.push({ way: c.down, a: move(b, aside), b: move(a, aside), wide });
    }
    return lines;
}

function WayLine({ line, measure, dark, active }: { line: Line; measure: Measure; dark: boolean; active: boolean }): JSX.Element {
    const { a, b, way, wide } = line;
    // Marks sit at a third from the sender, where lines of other pairs lie apart.
    const mark = { x: a.x + (b.x - a.x) * 0.3, y: a.y + (b.y - a.y) * 0.3 };
    const stroke = colour(way, measure, dark);
    return (
        <g class={`way way-${way.state}${active ? ' active' : ''}`}>
            <line class="way-line" x1={a.x} y1={a.y} x2={b.x} y2={b.y}
                stroke-width={way.state === 'used' ? wide : way.state === 'down' ? 2 : 1.2}
                stroke={stroke ?? undefined} />
            {way.state === 'idle' ? <circle class="way-mark" cx={mark.x} cy={mark.y} r={3} /> : null}
            {way.state === 'down'
                ? <path class="way-mark" d={`M${mark.x - 4.5} ${mark.y - 4.5}l9 9m0 -9l-9 9`} /> : null}
            {way.state === 'shut'
                ? <path class="way-mark" d={`M${mark.x - 5} ${mark.y}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0m1.5 3.5l7 -7`} /> : null}
            {way.state === 'unseen'
                ? <text class="way-mark" x={mark.x} y={mark.y + 4} text-anchor="middle">?</text> : null}
        </g>
    );
}

function Box({ name, at, wide, troubled, hosts }: {
    name: string; at: Point; wide: number; troubled: string; hosts: number;
}): JSX.Element {
    const href = useHref();
    const fits = Math.max(3, Math.floor((wide - 8) / 7.2));
    const text = clean(name);
    const shown = text.length > fits ? `${text.slice(0, Math.ceil(fits / 2) - 1)}…${text.slice(-(Math.floor(fits / 2)))}` : text;
    return (
        <a href={href('switch', [name])} class="box" tabIndex={-1}>
            <title>{text}{troubled ? `: ${troubled}` : ''}</title>
            <rect x={at.x - wide / 2} y={at.y - BOX_H / 2} width={wide} height={BOX_H} rx={3} class={troubled ? 'troubled' : ''} />
            <text x={at.x} y={at.y + 4.5} text-anchor="middle">{shown}</text>
            {troubled ? <text class="flag" x={at.x + wide / 2 - 5} y={at.y - BOX_H / 2 + 4} text-anchor="middle">▲</text> : null}
            {hosts > 0 ? <text class="hosts" x={at.x} y={at.y + BOX_H / 2 + 16} text-anchor="middle">{hosts} {hosts === 1 ? 'host' : 'hosts'}</text> : null}
        </a>
    );
}

/** From a line, the nearest that begins in a direction. */
function step(lines: Line[], from: number, key: string): number {
    const n = lines.length;
    if (key === 'ArrowRight' || key === 'ArrowDown') return (from + 1) % n;
    if (key === 'ArrowLeft' || key === 'ArrowUp') return (from + n - 1) % n;
    if (key === 'Home') return 0;
    return key === 'End' ? n - 1 : from;
}

export function Drawing({ fabric, measure, trouble, mark }: {
    fabric: Fabric; measure: Measure; trouble: Map<string, string>; mark: (text: string) => void;
}): JSX.Element {
    const [frame, space] = useWidth<HTMLDivElement>();
    const dark = useDark();
    const href = useHref();
    const [active, setActive] = useState(-1);
    const hasHosts = fabric.hostsOf.size > 0;
    const { at, box, height } = places(fabric, Math.max(280, space), hasHosts);
    const lines = linesOf(fabric.layers.flatMap((l) => l.cables), at);
    const choose = (i: number) => {
        setActive(i);
        const line = lines[i];
        mark(line ? sentence(line.way) : '');
    };
    const open = (way: Way) => go(href('link', [way.switch, way.port]));
    const onKey = (e: KeyboardEvent) => {
        const line = lines[active];
        if (e.key === 'Enter' && line) open(line.way);
        else if (/^(Arrow|Home|End)/.test(e.key) && lines.length > 0) {
            choose(active < 0 ? 0 : step(lines, active, e.key));
            e.preventDefault();
        }
    };
    return (
        <div ref={frame} class="drawing" tabIndex={0} role="application" aria-label="Fabric: arrows go from link to link, Enter opens"
            onKeyDown={onKey} onFocus={() => { if (active < 0 && lines.length > 0) choose(0); }}
            onBlur={() => choose(-1)} onMouseLeave={() => choose(-1)}>
            {space > 0
                ? <svg width={Math.max(280, space)} height={height}>
                    {lines.map((line, i) => <WayLine key={line.way.key} line={line} measure={measure} dark={dark} active={i === active} />)}
                    {lines.map((line, i) => (
                        <line key={line.way.key} class="way-hit" x1={line.a.x} y1={line.a.y} x2={line.b.x} y2={line.b.y}
                            onMouseEnter={() => choose(i)} onClick={() => open(line.way)} />
                    ))}
                    {[...at].map(([name, point]) => (
                        <Box key={name} name={name} at={point} wide={box} troubled={trouble.get(name) ?? ''}
                            hosts={fabric.hostsOf.get(name)?.length ?? 0} />
                    ))}
                </svg>
                : null}
        </div>
    );
}
