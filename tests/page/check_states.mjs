// SPDX-License-Identifier: Apache-2.0
// What the page says while it does not know all: opened at any view, of a moment before, where the daemon refuses an
// answer, gives less than there is, or says what this page does not know; over fabrics on paper (paper.mjs).
//
// usage: check_states.mjs FILES FOLDER [PART]    FILES: the page as built
import { axe, check, newPage, settled, summary, withBrowser } from './browser.mjs';
import { Paper, serve } from './paper.mjs';

const [files, , part] = process.argv.slice(2);
const STILL_MS = 3_600_000; // no window closes meanwhile

async function withPaper(options, work) {
    const paper = new Paper({ windowMs: STILL_MS, ...options });
    const server = await serve(paper, files);
    try {
        await work(`http://127.0.0.1:${server.address().port}/`, paper);
    } finally {
        server.closeAllConnections();
        server.close();
    }
}

async function shown(page, url, hash) {
    await page.goto('about:blank');
    await page.goto(`${url}#/${hash}`);
    await settled(page);
}

const text = (page, what = 'main') => page.locator(what).first().textContent();

/** What is of now says so where a moment before is looked at. */
async function past(page, url, paper) {
    const at = paper.span(paper.number - 5).window_start_ms;
    const flow = '10.1.0.2:49152-10.1.1.1';
    paper.explain = () => ({ total: 1, records: [paper.path(paper.flows[0], paper.number)] });
    for (const view of ['flows', `flow/${flow}`, 'jobs', 'job/88', 'host/gpu1', 'unseen', 'link/leaf1/Ethernet50']) {
        await shown(page, url, `${view}?at=${at}`);
        const then = await text(page);
        await shown(page, url, view);
        const now = await text(page);
        check(`${view} of a moment before says what is of now`, / of now, not of then\./.test(then) && !/not of then/.test(now), then.slice(0, 200));
    }
    await shown(page, url, `switch/leaf4?at=${at}`);
    check('so does what the doctor says of a switch', /The doctor says now, not then:.*no sample for 7 windows/.test(await text(page)), await text(page));
    check('and the banner leaves it out', await page.locator('.banner').count() === 0);
}

const PARTS = { past };

await withBrowser(async (context) => {
    for (const [name, work] of Object.entries(PARTS)) {
        if (part && part !== name) continue;
        await withPaper(work.paper ?? {}, async (url, paper) => {
            const page = await newPage(context);
            await work(page, url, paper);
            const wrong = await axe(page);
            check(`${name}: axe finds nothing serious`, wrong.length === 0, wrong.join('; '));
            const other = page.complaints.filter((c) => !/status of (503|404)/.test(c));
            check(`${name}: nothing else complains in the console`, other.length === 0, other.slice(0, 5).join('; '));
            await page.close();
        });
    }
});
process.exit(summary());
