// SPDX-License-Identifier: Apache-2.0
// A series over the windows, with the band that chance explains and the moments that were marked.
import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { useDark, useWidth } from './hooks.ts';
import { alone, momentText, ticksText } from './timeline.ts';

export interface Series {
    label: string;
    values: (number | null)[];
    /** A name of CSS: --accent. */
    colour: string;
    dash?: number[];
    width?: number;
    /** The edge of a band is not drawn. */
    edge?: boolean;
}

export interface ChartProps {
    /** Unix milliseconds; a line ends at a value of null (timeline.ts). */
    times: number[];
    series: Series[];
    /** Indices of two series with a fill between. */
    band?: [number, number];
    marks: { at: number; text: string }[];
    unit: string;
    label: string;
    height?: number;
    max?: number;
    onPick?: (ms: number) => void;
}

function value(style: CSSStyleDeclaration, name: string): string {
    return style.getPropertyValue(name).trim();
}

function drawMarks(u: uPlot, marks: ChartProps['marks'], colour: string): void {
    const c = u.ctx;
    c.save();
    c.strokeStyle = colour;
    c.fillStyle = colour;
    c.lineWidth = devicePixelRatio;
    c.font = `600 ${11 * devicePixelRatio}px sans-serif`;
    for (const m of marks) {
        const x = u.valToPos(m.at / 1000, 'x', true);
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
        c.beginPath();
        c.moveTo(x, u.bbox.top);
        c.lineTo(x, u.bbox.top + u.bbox.height);
        c.stroke();
        c.fillText(m.text, x + 4 * devicePixelRatio, u.bbox.top + 11 * devicePixelRatio);
    }
    c.restore();
}

function options(p: ChartProps, width: number, style: CSSStyleDeclaration): uPlot.Options {
    const muted = value(style, '--muted');
    const font = `11px ${style.fontFamily}`;
    const axis = { stroke: muted, font, grid: { stroke: value(style, '--line'), width: 1 }, ticks: { stroke: value(style, '--line'), width: 1, size: 4 } };
    return {
        width,
        height: p.height ?? 220,
        legend: { show: true, live: true },
        cursor: { y: false, points: { size: 6 } },
        scales: { x: { time: true }, y: { range: (_u, _min, max) => [0, p.max ?? Math.max(1, (max || 0) * 1.08)] } },
        axes: [
            { ...axis, space: 70, values: (_u, ticks, _axis, _space, step) => ticksText(ticks, step) },
            { ...axis, size: 52, values: (_u, ticks) => ticks.map((t) => `${t}${p.unit}`) },
        ],
        bands: p.band ? [{ series: p.band, fill: value(style, '--band') }] : [],
        series: [
            { label: 'at', value: (_u, s) => momentText(s) },
            ...p.series.map((s) => ({
                label: s.label,
                stroke: s.edge ? 'transparent' : value(style, s.colour),
                width: s.width ?? 1.5,
                points: { show: false, size: s.dash ? 4 : 8, fill: value(style, s.colour), filter: (u: uPlot, i: number) => (s.edge ? null : alone(u.data[i] ?? [])) },
                ...(s.dash ? { dash: s.dash } : {}),
                value: (_u: uPlot, v: number | null) => (v === null || v === undefined ? '–' : `${v.toFixed(1)}${p.unit}`),
            })),
        ],
        hooks: { draw: [(u) => drawMarks(u, p.marks, value(style, '--accent'))] },
    };
}

export function Chart(props: ChartProps): JSX.Element {
    const [frame, width] = useWidth<HTMLDivElement>();
    const dark = useDark();
    const plot = useRef<uPlot | null>(null);
    const shape = `${width}/${dark}/${props.series.map((s) => s.label).join()}/${props.marks.map((m) => `${m.at}${m.text}`).join()}`;
    const pick = useRef(props.onPick);
    pick.current = props.onPick;
    const data = (): uPlot.AlignedData => [props.times.map((t) => t / 1000), ...props.series.map((s) => s.values)];
    useLayoutEffect(() => {
        const e = frame.current;
        if (!e || width < 60) return undefined;
        const u = new uPlot(options(props, width, getComputedStyle(e)), data(), e);
        plot.current = u;
        const picked = () => {
            const index = u.cursor.idx;
            const at = index === null || index === undefined ? undefined : u.data[0][index];
            if (at !== undefined) pick.current?.(Math.round(at * 1000));
        };
        u.over.addEventListener('click', picked);
        return () => {
            u.destroy();
            plot.current = null;
        };
    }, [shape]);
    useLayoutEffect(() => {
        plot.current?.setData(data());
    }, [props.times, props.series]);
    return <div ref={frame} class="chart" role="img" aria-label={props.label} />;
}
