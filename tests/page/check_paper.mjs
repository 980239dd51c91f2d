// SPDX-License-Identifier: Apache-2.0
// The page over fabrics on paper (paper.mjs): the moment that is looked at, before and after, a job, texts
// that mean harm, pictures in light, dark and at a phone's size, and 512 leaves x 32 spines with
// 100,000 flows, whose times are printed and written to FOLDER/figures.json.
//
// usage: check_paper.mjs FILES FOLDER [small|live|large]    FILES: the page as built
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { axe, check, newPage, settled, summary, withBrowser } from './browser.mjs';
import { Paper, STILL_MS, withPaper } from './paper.mjs';

const [files, shots] = process.argv.slice(2);
const VIEWS = [
    'fabric', 'imbalance', 'imbalance/group/leaf1%2Fup', 'events', 'links', 'flows', 'jobs', 'job/88', 'hosts', 'unseen',
    'link/leaf1/Ethernet50', 'switch/leaf3', 'host/gpu1',
];
const LOOKS = [['light', {}], ['dark', { dark: true }], ['phone', { width: 390, height: 844 }]];

const heading = (page) => page.locator('main h1').first().textContent();

function silent(page, what) {
    check(`${what}: nothing complains in the console`, page.complaints.length === 0, page.complaints.slice(0, 5).join('; '));
}

async function allViews(context, url) {
    for (const [look, options] of LOOKS) {
        const page = await newPage(context, options);
        const wrong = [];
        for (const view of VIEWS) {
            await page.goto(`${url}#/${view}`);
            await settled(page);
            await page.waitForFunction(() => document.fonts.status === 'loaded');
            for (const w of await axe(page)) wrong.push(`${view}: ${w}`);
            const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            if (wide > 0) wrong.push(`${view}: ${wide} pixels wider than the screen`);
            await page.screenshot({ path: join(shots, `paper-${look}-${view.replace(/\W+/g, '-')}.png`), fullPage: true });
        }
        check(`${look}: axe finds nothing serious in ${VIEWS.length} views, none is wider than the screen`, wrong.length === 0, wrong.join('; '));
        silent(page, look);
        await page.close();
    }
}

async function moments(context, url, paper) {
    const page = await newPage(context);
    const now = paper.span(paper.number).window_end_ms;
    await page.goto(`${url}#/imbalance`);
    await settled(page);
    await page.waitForSelector('.chart canvas');
    const shown = () => page.getAttribute('header', 'data-window').then(Number);
    const reaches = (ms) => page.waitForFunction((t) => document.querySelector('header')?.getAttribute('data-window') === String(t), ms);
    check('it begins with the last window', await shown() === now, `${await shown()}`);
    await page.getByRole('slider', { name: 'Moment' }).focus();
    for (const back of [1, 2]) {
        await page.keyboard.press('ArrowLeft');
        await reaches(now - back * paper.windowMs);
    }
    check('the slider goes two windows back by keys', true);
    check('the head says that it is then', (await page.locator('.moment').textContent()).startsWith('then:'));
    // Both before the browser tells of the first address: neither is lost.
    await page.getByRole('button', { name: 'Mark this moment as A' }).evaluate((mark) => {
        mark.click();
        document.dispatchEvent(new KeyboardEvent('keydown', { key: 'l', bubbles: true }));
    });
    await reaches(now);
    await page.getByRole('button', { name: 'as B' }).click();
    const rows = page.getByRole('region', { name: 'Before and after' }).first().locator('tbody tr');
    await rows.first().waitFor();
    const of = (n) => paper.history.get(n).fim.toFixed(1);
    const fim = await rows.first().locator('td').allTextContents();
    check('before and after stand beside each other', fim[1] === of(paper.number - 2) && fim[2] === of(paper.number), fim.join(' '));
    const address = page.url();
    const other = await newPage(context);
    await other.goto(address);
    await other.getByRole('region', { name: 'Before and after' }).first().locator('tbody tr').first().waitFor();
    check('the address alone shows the same', (await other.getByRole('region', { name: 'Before and after' }).first().locator('tbody tr').first().locator('td').allTextContents()).join() === fim.join());
    await page.keyboard.press('[');
    await reaches(now - paper.windowMs);
    check('[ goes to the window before', true);
    const strip = page.getByRole('slider', { name: 'Moment' });
    await strip.click({ position: { x: 2, y: 10 } });
    await reaches(paper.span(paper.number - 360).window_end_ms);
    check('a click on the strip goes to its window', true);
    paper.advance();
    silent(page, 'moments');
    silent(other, 'an address that was passed on');
    await page.close();
    await other.close();
}

/** Which flows a plan would move, from which path to which. */
async function moves(context, url) {
    const page = await newPage(context);
    await page.goto(`${url}#/imbalance`);
    await settled(page);
    check('no moves are shown before they are computed', await page.getByRole('region', { name: 'Flows that the plan moves' }).count() === 0);
    await page.getByRole('button', { name: 'Compute for the last window' }).click();
    const table = page.getByRole('region', { name: 'Flows that the plan moves' });
    await table.waitFor();
    const rows = await table.locator('tbody tr').allTextContents();
    check('the plan shows the flows that it moves, from which path to which', rows.length === 64 &&
        rows.every((r) => /10\.1\.0\.1:500\d\d > 10\.1\.1\.1.*leaf1 \S+ > spine1 Ethernet2 > leaf2.*leaf1 \S+ > spine2 Ethernet2 > leaf2/.test(r)), rows[0]);
    check('and how many they are of', await table.locator('table').getAttribute('data-more') === '2');
    const wrong = await axe(page);
    check('moves: axe finds nothing serious', wrong.length === 0, wrong.join('; '));
    silent(page, 'moves');
    await page.close();
}

/** What is wrong with a job: who waits for whom, with a link to each thing that is named. */
async function diagnosis(context, url) {
    const page = await newPage(context);
    await page.goto(`${url}#/job/88`);
    await settled(page);
    const card = page.getByRole('region', { name: 'Diagnosis', exact: true }).locator('article');
    await card.first().waitFor();
    const text = await card.first().textContent();
    check('a job shows its diagnosis with the wait chain', await card.count() === 1 && text.includes('Communication hangs') && text.includes('rank 3 waits for rank 2 waits for rank 1'), text);
    check('with evidence for and against it', text.includes('its transfer to rank 2 stands') && text.includes('no counters of its host') && text.includes('411 errors'), text);
    const plans = page.getByRole('region', { name: 'Plans of source ports', exact: true }).first().locator('tbody tr');
    await plans.first().waitFor();
    const stages = await plans.allTextContents();
    check('and its plans, the newest first, with stage and counts', stages.length === 2 && /confirmed.*64.*64.*0.*0/.test(stages[0]) && /withdrawn: samples show a port on another path.*62.*58.*1.*2/.test(stages[1]), stages.join(' | '));
    const moves = page.getByRole('region', { name: 'Queue pairs with ports of plans', exact: true }).first().locator('tbody tr');
    await moves.first().waitFor();
    const moved = await moves.allTextContents();
    check('which queue pairs they move, from which path to which, and whether samples confirm it', moved.length === 2 && /10\.1\.0\.1:50001-10\.1\.1\.1.*confirmed.*leaf1 \S+ > spine1 Ethernet2 > leaf2.*leaf1 \S+ > spine2 Ethernet2 > leaf2/.test(moved[0]) && /50002.*awaited/.test(moved[1]), moved.join(' | '));
    const facts = await page.locator('main .facts').first().textContent();
    check('when it sends is said, as known by its flows', facts.includes('an exchange every 12.3 s, regularity 0.81 of 1; sends 42 % of the time'), facts);
    check('what its flows sent in the window', ['Messages1.1 a second, about 262 kB each', '18 of 900 samples', '2 negative, 0 not ready', '7 acknowledgements'].every((t) => facts.includes(t)), facts);
    const spread = await page.getByRole('region', { name: 'Spread of the job at each group' }).locator('tbody tr').allTextContents();
    check('how it spreads: the least even group first, with the link that takes nothing', spread.length === 2 && /^leaf1\/up.*40, 2 sprayed.*3 of 4.*2\.8.*10\.2 \(8\.1 to 12\.4\).*leaf1 Ethernet52 without a sample/.test(spread[0]) && /^leaf2\/up.*4 of 4.*none beyond chance/.test(spread[1]), spread.join(' | '));
    await card.getByRole('link', { name: 'leaf1 Ethernet49', exact: true }).click();
    await page.waitForFunction(() => document.querySelector('main h1')?.textContent === 'Link leaf1 Ethernet49');
    check('and leads to the link under it', true);
    await page.goto(`${url}#/job/89`);
    await settled(page);
    await page.getByText('No rank of it hangs or is slow.').waitFor();
    await page.getByText('no period is known: its traffic does not repeat, or more often than every 2.5 s').waitFor();
    check('a job without one says so', true);
    check('and has no plans', await page.getByRole('region', { name: 'Plans of source ports', exact: true }).count() === 0);
    await page.goto(`${url}#/imbalance/group/leaf1%2Fup`);
    await settled(page);
    const choice = page.getByRole('region', { name: 'How the switch chooses' });
    await choice.getByText('a linear hash of the header').waitFor();
    check('a group shows how its switch chooses, with what that never takes', /source address, source port.*98 % of 400 flows rightly.*Never chosenleaf1 Ethernet52/.test(await choice.textContent()), await choice.textContent());
    silent(page, 'diagnosis');
    await page.close();
}

/** The last probe of a flow: which switch answered, and what it leaves unknown. */
async function probe(context, url) {
    const page = await newPage(context);
    await page.goto(`${url}#/flows`);
    await settled(page);
    await page.getByRole('region', { name: 'Flows', exact: true }).locator('tbody tr a').first().click();
    const section = page.getByRole('region', { name: 'Probe', exact: true });
    await section.getByText('for the daemon: some of the switches answered').waitFor();
    const rows = await section.locator('tbody tr').allTextContents();
    check('a flow shows its last probe, switch by switch, with what stays unknown', rows.length === 2
        && /^1leaf1.*10\.1\.0\.254.*to which switch it sends the flow$/.test(rows[0]) && /^2\?.*no answer to 3 probes/.test(rows[1]), rows.join(' | '));
    silent(page, 'probe');
    await page.close();
}

/** What is made of a window of which not all was taken in. */
async function inPart(context, url, paper) {
    const page = await newPage(context);
    paper.lacking = { missing_partitions: [3, 7], seen_share: 0.887 };
    await page.goto(`${url}#/imbalance`);
    await settled(page);
    const text = await page.locator('main').textContent();
    check('a window that lacks something says what', text.includes('Of this window: 2 partitions of flows missing; 88.7 % of the observations were taken in.'), text.slice(0, 200));
    paper.lacking = {};
    silent(page, 'in part');
    await page.close();
}

async function live(context, url) {
    const page = await newPage(context);
    await page.goto(url);
    await settled(page);
    const before = Number(await page.getAttribute('header', 'data-window'));
    await page.waitForFunction((t) => Number(document.querySelector('header')?.getAttribute('data-window')) > t, before);
    check('a window that closes is shown without a touch', true);
    silent(page, 'live');
    await page.close();
}

const HARM = '<img src=x onerror="document.title=\'harmed\'">\u001b[31m\u202e';

async function hostile(context, url, paper) {
    for (const s of paper.topology.switches) for (const p of s.ports) if (p.peer === 'spine1') p.peer = HARM;
    for (const s of paper.topology.switches) if (s.name === 'spine1') s.name = HARM;
    paper.topology.hosts[0].name = HARM;
    paper.findings = () => [{ switch: HARM, severity: 'warning', text: HARM, advice: HARM }];
    const page = await newPage(context);
    for (const view of ['fabric', 'links', 'hosts', 'unseen', `switch/${encodeURIComponent(HARM)}`, `host/${encodeURIComponent(HARM)}`, `flow/${encodeURIComponent(HARM)}`]) {
        await page.goto(`${url}#/${view}`);
        await settled(page);
        const text = await page.locator('body').textContent();
        const images = await page.locator('img').count();
        check(`${view.slice(0, 12)}: text from the network is text`, images === 0 && text.includes('<img src=x') && text.includes('␛[31m<U+202E>') && !/[\u001b\u202e]/.test(text), `${images} images`);
    }
    check('nothing of it ran', await page.title() !== 'harmed');
    // A flow that nobody knows is answered 404, which the console notes.
    const other = page.complaints.filter((c) => !/404.*explain/.test(c));
    check('hostile: nothing else complains', other.length === 0, other.join('; '));
    await page.close();
}

const median = (values) => values.slice().sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** Times in a browser without a GPU on this machine, with the answers made beforehand. */
async function large(context, url, paper) {
    const figures = { leaves: paper.leaves, spines: paper.spines, flows: paper.flows.length };
    const page = await newPage(context);
    const times = [];
    for (let i = 0; i < 3; i++) {
        await page.goto('about:blank');
        await page.goto(`${url}#/fabric`);
        await page.waitForSelector('.matrix canvas');
        await settled(page);
        times.push(await page.evaluate(() => ({
            paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
            matrix: performance.now(),
        })));
    }
    figures.first_paint_ms = Math.round(median(times.map((t) => t.paint)));
    figures.matrix_ms = Math.round(median(times.map((t) => t.matrix)));
    check('512 x 32: both directions are a matrix', await page.locator('.matrix').count() === 2, `${await page.locator('.matrix').count()}`);
    await page.screenshot({ path: join(shots, 'large-light.png'), fullPage: true });
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.screenshot({ path: join(shots, 'large-dark.png'), fullPage: true });
    await page.emulateMedia({ colorScheme: 'light' });

    const canvas = page.locator('.matrix canvas').first();
    const position = { x: 74 + 40, y: 24 + 40 };
    await canvas.hover({ position });
    await page.waitForFunction(() => /^\S+ \S+ to \S+ \S+: /.test(document.querySelector('.readout')?.textContent ?? ''));
    const said = await page.locator('.readout').first().textContent();
    const began = Date.now();
    await canvas.click({ position });
    await page.getByRole('region', { name: 'Flows', exact: true }).locator('tbody tr').first().waitFor();
    figures.drill_down_ms = Date.now() - began;
    check('a cell opens its link with the flows on it', (await heading(page)) === `Link ${said.split(' to ')[0]}`, `${await heading(page)}: ${said}`);

    await page.goto(`${url}#/fabric`);
    await settled(page);
    await page.locator('.matrix-frame').first().focus();
    for (const key of ['ArrowRight', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
    const there = await page.locator('.readout').first().textContent();
    check('the matrix is gone through by keys', /^leaf2 Ethernet51 to spine3 /.test(there), there);

    const client = await page.context().newCDPSession(page);
    await client.send('Performance.enable');
    const metrics = async () => Object.fromEntries((await client.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
    const updates = [];
    for (let i = 0; i < 3; i++) {
        const before = await metrics();
        const window = Number(await page.getAttribute('header', 'data-window'));
        paper.advance();
        paper.tell();
        await page.waitForFunction((t) => Number(document.querySelector('header')?.getAttribute('data-window')) > t, window);
        const after = await metrics();
        updates.push({ script: (after.ScriptDuration - before.ScriptDuration) * 1000, all: (after.TaskDuration - before.TaskDuration) * 1000, heap: after.JSHeapUsedSize / 1e6 });
    }
    figures.update_script_ms = Math.round(median(updates.map((u) => u.script)));
    figures.update_main_thread_ms = Math.round(median(updates.map((u) => u.all)));
    figures.heap_mb = Math.round(median(updates.map((u) => u.heap)));
    await page.goto(`${url}#/flows`);
    await settled(page);
    await page.getByRole('region', { name: 'Flows', exact: true }).locator('tbody tr').first().waitFor();
    check('flows: the fastest, and how many there are', /100\s?000 in all/.test(await page.locator('main').textContent()), await page.locator('main .lead').first().textContent());
    const bad = await axe(page);
    check('512 x 32: axe finds nothing serious', bad.length === 0, bad.join('; '));
    silent(page, '512 x 32');
    writeFileSync(join(shots, 'figures.json'), `${JSON.stringify(figures, undefined, 1)}\n`);
    console.log(JSON.stringify(figures));
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${url}#/fabric`);
    await settled(page);
    await page.screenshot({ path: join(shots, 'large-phone.png') });
    await page.close();
}

const part = process.argv[4]; // for who works on it

await withBrowser(async (context) => {
    if (!part || part === 'small')
        await withPaper(new Paper({ windowMs: STILL_MS }), files, async (url, paper) => {
            await allViews(context, url);
            await moments(context, url, paper);
            await diagnosis(context, url);
            await moves(context, url);
            await probe(context, url);
            await inPart(context, url, paper);
            await hostile(context, url, paper);
        });
    if (!part || part === 'live') await withPaper(new Paper({ windowMs: 1000 }), files, (url) => live(context, url));
    if (!part || part === 'large')
        await withPaper(new Paper({ leaves: 512, spines: 32, flows: 100_000, windowMs: STILL_MS }), files, (url, paper) => large(context, url, paper));
});
process.exit(summary());
