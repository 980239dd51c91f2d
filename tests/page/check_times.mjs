// SPDX-License-Identifier: Apache-2.0
// Lines over windows some of which were not recorded, and times of other days: over a fabric on paper whose
// windows reach back for days.
//
// usage: check_times.mjs FILES FOLDER    FILES: the page as built
import { join } from 'node:path';
import { check, newPage, settled, summary, withBrowser } from './browser.mjs';
import { Paper, withPaper } from './paper.mjs';

const [files, shots] = process.argv.slice(2);
const WINDOW_MS = 600_000;

/** How many windows ago: 60 of them, then one, then 100 to the last. */
const kept = (ago) => ago >= 300 || ago === 200 || ago < 100;

/** The texts that are drawn on canvases from now on; no line of dashes is, which at some hours lies over the other. */
async function listen(page) {
    await page.addInitScript(() => {
        window.drawn = [];
        const { fillText } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
            window.drawn.push(String(text));
            return fillText.call(this, text, ...rest);
        };
        const { stroke } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.stroke = function (...path) {
            if (this.getLineDash().length === 0) stroke.apply(this, path);
        };
    });
}

/** The pieces of the line of a chart, from left to right: [first, last] column of each. */
function pieces(page) {
    return page.evaluate(() => {
        const canvas = document.querySelector('.chart canvas');
        const style = getComputedStyle(canvas).getPropertyValue('--accent').trim();
        const [r, g, b] = [1, 3, 5].map((i) => parseInt(style.slice(i, i + 2), 16));
        const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const found = [];
        for (let x = 0; x < width; x++) {
            let is = false;
            for (let y = 0; y < height && !is; y++) {
                const i = 4 * (y * width + x);
                is = data[i + 3] > 180 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 60;
            }
            const last = found[found.length - 1];
            if (is && last && x - last[1] === 1) last[1] = x;
            else if (is) found.push([x, x]);
        }
        return found;
    });
}

const WIDE = 3; // columns of a point that is seen

async function lines(page, url) {
    for (const view of ['imbalance', 'link/leaf1/Ethernet50']) {
        await page.goto(`${url}#/${view}`);
        await settled(page);
        await page.waitForSelector('.chart canvas');
        await page.waitForFunction(() => window.drawn.some((t) => /%$/.test(t)));
        const found = await pieces(page);
        check(`${view}: windows that are missing are gaps`, found.length === 3, JSON.stringify(found));
        const wide = (found[1]?.[1] ?? 0) - (found[1]?.[0] ?? 0) + 1;
        check(`${view}: a window between them is a point`, wide >= WIDE && wide < 20, JSON.stringify(found));
        const days = await page.evaluate(() => [...new Set(window.drawn.filter((t) => /^\d{4}-\d\d-\d\d$/.test(t)))]);
        check(`${view}: its axis names the days`, days.length >= 2, days.join());
        await page.screenshot({ path: join(shots, `times-${view.replace(/\W+/g, '-')}.png`), fullPage: true });
        await page.evaluate(() => { window.drawn = []; });
    }
}

async function pointed(page, url, paper) {
    await page.goto(`${url}#/imbalance`);
    await settled(page);
    const over = page.locator('.chart .u-over');
    const box = await over.boundingBox();
    await page.mouse.move(box.x + 3, box.y + box.height / 2);
    const at = () => page.locator('.chart .u-legend .u-value').first().textContent();
    await page.waitForFunction(() => /\d/.test(document.querySelector('.chart .u-legend .u-value').textContent));
    check('what is under the pointer says of which day', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(await at()), await at());
    await page.mouse.click(box.x + box.width * 0.3, box.y + box.height / 2);
    check('a click into a gap goes nowhere', !page.url().includes('at='), page.url());
    await page.mouse.click(box.x + 3, box.y + box.height / 2);
    await page.waitForFunction((ms) => Number(document.querySelector('header').dataset.window) - ms === Number(/at=(\d+)/.exec(location.hash)?.[1]), WINDOW_MS);
    const then = await page.locator('.moment').textContent();
    check('the window that is shown says of which day', /^then: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d to /.test(then), then);
    const strip = page.getByRole('slider', { name: 'Moment' });
    await strip.focus();
    await page.keyboard.press('End');
    const first = paper.span(paper.number - 99).window_start_ms;
    for (let i = 0; i < 99; i++) await page.keyboard.press('ArrowLeft');
    await page.waitForFunction((t) => location.hash.includes(`at=${t}`), first);
    const told = await strip.getAttribute('aria-valuetext');
    check('the strip says what was not recorded before a window', /the first after 17 h that were not recorded/.test(told), told);
}

await withBrowser(async (context) => {
    const paper = new Paper({ windowMs: WINDOW_MS });
    const past = paper.past.bind(paper);
    const number = (r) => Math.round(r.window_start_ms / WINDOW_MS);
    paper.past = (query) => past(query).filter((r) => kept(paper.number - number(r)));
    for (const n of [...paper.history.keys()]) if (!kept(paper.number - n)) paper.history.delete(n);
    paper.history.get(paper.number - 200).fim = 38; // as chance gives: neither point hides the other
    await withPaper(paper, files, async (url) => {
        const page = await newPage(context);
        await listen(page);
        await lines(page, url);
        await pointed(page, url, paper);
        check('nothing complains in the console', page.complaints.length === 0, page.complaints.slice(0, 5).join('; '));
    });
});
process.exit(summary());
