// SPDX-License-Identifier: Apache-2.0
// The windows that are kept, as a strip: each a bar as high as the fabric's FIM, marked by verdict.
// A slider for the keyboard: left and right go from window to window, End goes to now.
import type { JSX } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useDark, useHistory, useStore, useWidth } from './hooks.ts';
import { verdictText } from './model.ts';
import type { Imbalance } from './records.ts';
import { store } from './store.ts';
import { age, clock, tenth } from './text.ts';
import { isGap } from './timeline.ts';
import { changeMoment } from './ui.tsx';

const HEIGHT = 30;

interface Bars {
    start: number;
    end: number;
    record: Imbalance | undefined;
    partial: boolean;
    /** How long before it no window was kept; 0: the one before is the bar before. */
    gap: number;
}

/** The newest at the right end, none wider than that. */
function stepOf(width: number, bars: number): number {
    return Math.min(18, width / Math.max(bars, 1));
}

function paint(canvas: HTMLCanvasElement, bars: Bars[], width: number, chosen: number): void {
    const dots = devicePixelRatio || 1;
    const c = canvas.getContext('2d');
    if (!c) return;
    canvas.width = width * dots;
    canvas.height = HEIGHT * dots;
    canvas.style.height = `${HEIGHT}px`;
    c.scale(dots, dots);
    const style = getComputedStyle(canvas);
    const of = (name: string) => style.getPropertyValue(name).trim();
    const colours: Record<string, string> = { fault: of('--bad'), uneven: of('--warn'), even: of('--quiet') };
    const most = Math.max(50, ...bars.map((b) => b.record?.fim ?? 0));
    const step = stepOf(width, bars.length);
    const from = width - step * bars.length;
    bars.forEach((b, i) => {
        const x = from + i * step;
        const fim = b.record?.fim;
        const h = fim === undefined ? 2 : Math.max(3, (fim / most) * (HEIGHT - 6));
        c.fillStyle = colours[b.record?.verdict ?? ''] ?? of('--line');
        c.fillRect(x, HEIGHT - h, Math.max(1, step - (step > 4 ? 1 : 0)), h);
        if (b.gap > 0) {
            c.fillStyle = of('--muted');
            for (let y = 0; y < HEIGHT; y += 5) c.fillRect(x - 1, y, 1.5, 3);
            c.fillStyle = colours[b.record?.verdict ?? ''] ?? of('--line');
        }
        // A fault has a cap as well, for who does not see the colour.
        if (b.record?.verdict === 'fault') c.fillRect(x, HEIGHT - h - 3, Math.max(1, step - 1), 1.5);
    });
    if (chosen >= 0) {
        c.strokeStyle = of('--text');
        c.lineWidth = 2;
        c.strokeRect(from + chosen * step, 1, Math.max(3, step), HEIGHT - 2);
    }
}

export function Scrubber(): JSX.Element {
    const { windows, keeps, at, window: shown, fabric } = useStore();
    const dark = useDark();
    const [frame, width] = useWidth<HTMLDivElement>();
    const canvas = useRef<HTMLCanvasElement>(null);
    const [pointed, point] = useState(-1);
    const key = `fabric/${fabric?.name ?? ''}`;
    const asked = useHistory<Imbalance>('imbalance', fabric ? key : '');
    const bars: Bars[] = useMemo(() => {
        const records = new Map((asked.records ?? store.memory.of(key)).map((r) => [r.window_end_ms ?? 0, r]));
        const list = keeps && windows ? windows.map((w) => ({ start: w.window_start_ms, end: w.window_end_ms, partial: w.partial ?? false })) : store.memory.spans().map((w) => ({ ...w, partial: false }));
        return list.map((w, i) => {
            const before = list[i - 1];
            return { ...w, record: records.get(w.end), gap: before && isGap(before, w) ? w.start - before.end : 0 };
        });
    }, [windows, asked.records, shown?.window_end_ms, keeps]);
    const found = at === undefined ? bars.length - 1 : bars.findIndex((b) => b.end > at);
    const chosen = found < 0 ? bars.length - 1 : found;
    useLayoutEffect(() => {
        if (canvas.current && width > 0) paint(canvas.current, bars, width, at === undefined ? -1 : chosen);
    }, [bars, width, chosen, at, dark]);
    const choose = (i: number) => {
        if (!keeps) return;
        const bar = bars[Math.max(0, Math.min(bars.length - 1, i))];
        const last = i >= bars.length - 1;
        changeMoment(last || !bar ? '' : String(bar.start));
    };
    const under = (e: MouseEvent) => {
        const box = (e.currentTarget as Element).getBoundingClientRect();
        const step = stepOf(box.width, bars.length);
        return Math.max(0, Math.floor((e.clientX - box.left - (box.width - step * bars.length)) / step));
    };
    const sayOf = (bar: Bars | undefined) => bar ? `${clock(bar.start)}${bar.gap > 0 ? `, the first after ${age(bar.gap)} that were not recorded` : ''}${bar.record?.fim === undefined ? '' : `, FIM ${tenth(bar.record.fim)} %, ${verdictText(bar.record)}`}` : 'no window yet';
    const told = sayOf(bars[chosen]);
    return (
        <div class="scrubber" data-nocopy>
            <span class="scrub-from">{bars[0] ? <>FIM since <span>{clock(bars[0].start)}</span></> : null}</span>
            <div ref={frame} class="scrub-frame" role="slider" tabIndex={0} aria-label="Moment" data-last={[...bars].reverse().find((b) => b.record)?.end} aria-valuemin={0} aria-valuemax={Math.max(0, bars.length - 1)}
                aria-valuenow={Math.max(0, chosen)} aria-valuetext={told} aria-disabled={!keeps} title={keeps ? sayOf(bars[pointed < 0 ? chosen : pointed]) : 'This daemon keeps no history: only the last window can be shown.'}
                onMouseDown={(e) => choose(under(e))} onMouseLeave={() => point(-1)}
                onMouseMove={(e) => { point(under(e)); if (e.buttons === 1) choose(under(e)); }}
                onKeyDown={(e) => {
                    if (e.key === 'ArrowLeft') choose(chosen - 1);
                    else if (e.key === 'ArrowRight') choose(chosen + 1);
                    else if (e.key === 'PageUp') choose(chosen - 10);
                    else if (e.key === 'PageDown') choose(chosen + 10);
                    else if (e.key === 'Home') choose(0);
                    else if (e.key === 'End') choose(bars.length - 1);
                    else return;
                    e.preventDefault();
                }}>
                <canvas ref={canvas} />
            </div>
            <span class="scrub-to">{keeps === false ? 'no history' : ''}</span>
        </div>
    );
}
