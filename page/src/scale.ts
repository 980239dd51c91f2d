// SPDX-License-Identifier: Apache-2.0
// The colours of load: one sequence whose lightness falls (on white) or rises (on black) all the way,
// so that it reads the same for every eye and in grey. Pure.

type Rgb = readonly [number, number, number];

const LIGHT: readonly Rgb[] = [
    [226, 218, 190], [226, 194, 116], [224, 156, 58], [206, 104, 28], [158, 58, 16], [90, 20, 14],
];
const DARK: readonly Rgb[] = [
    [46, 36, 42], [98, 42, 54], [158, 58, 48], [214, 98, 38], [246, 164, 66], [255, 238, 176],
];

export const STEPS = 64;

function mix(stops: readonly Rgb[], t: number): Rgb {
    const x = Math.min(1, Math.max(0, t)) * (stops.length - 1);
    const i = Math.min(stops.length - 2, Math.floor(x));
    const a = stops[i] ?? [0, 0, 0];
    const b = stops[i + 1] ?? a;
    const part = x - i;
    const of = (k: 0 | 1 | 2) => Math.round(a[k] + (b[k] - a[k]) * part);
    return [of(0), of(1), of(2)];
}

export function rgb(t: number, dark: boolean): Rgb {
    return mix(dark ? DARK : LIGHT, t);
}

export function css(t: number, dark: boolean): string {
    return `rgb(${rgb(t, dark).join(' ')})`;
}

/** Colours for values 0 to 1, as canvases take them. */
export function palette(dark: boolean): string[] {
    return Array.from({ length: STEPS }, (_, i) => css(i / (STEPS - 1), dark));
}

/** Relative luminance (WCAG 2). */
export function luminance([r, g, b]: Rgb): number {
    const part = (c: number) => {
        const s = c / 255;
        return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
}

/** By use: the low end is drawn apart, since most links of an idle fabric lie there. */
export function ofUse(utilization: number): number {
    return Math.sqrt(Math.min(1, Math.max(0, utilization)));
}

/** By share: 1 is the even share, 3 and more is the end. */
export function ofShare(times: number): number {
    return Math.min(1, Math.max(0, times / 3));
}
