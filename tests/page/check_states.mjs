// SPDX-License-Identifier: Apache-2.0
// What the page says while it does not know all: opened at any view, of a moment before, where the daemon refuses an
// answer, gives less than there is, or says what this page does not know; over fabrics on paper (paper.mjs).
//
// usage: check_states.mjs FILES FOLDER [PART]    FILES: the page as built
import { readFileSync } from 'node:fs';
import { axe, check, newPage, settled, shown, summary, text, WAIT_MS, withBrowser } from './browser.mjs';
import { diagnosis, HARM } from './diagnosis.mjs';
import { Paper, STILL_MS, withPaper } from './paper.mjs';

const [files, , part] = process.argv.slice(2);

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

/** Opened at a view that does not ask for links, as a bookmark is: nothing is made of there being none. */
async function direct(page, url) {
    for (const view of ['events', 'flows', 'jobs', 'hosts', 'unseen', 'fabric']) {
        await shown(page, url, view);
        check(`${view} opened at once: no word that nothing is seen`, await page.locator('.banner').count() === 0, await page.locator('.banner').allTextContents().then(String));
    }
}
direct.paper = { calm: true };

/** One answer is refused: of what the daemon has not said the page does not say that there is none. */
async function refused(page, url, paper) {
    paper.faults.set('doctor', 503);
    const none = /No active event|No such event|finds nothing|No window has closed|Nothing is known of it|No link is|none of its flows collides/;
    for (const view of ['fabric', 'events', 'events/collision', 'imbalance', 'links', 'unseen', 'host/gpu1', 'link/leaf1/Ethernet50', 'switch/leaf1', 'job/88']) {
        await page.goto('about:blank');
        await page.goto(`${url}#/${view}`);
        await page.waitForSelector('header[data-connection=lost]');
        await page.waitForFunction(() => !/Asking/.test(document.querySelector('main')?.textContent ?? 'Asking'));
        const said = await text(page);
        check(`${view}: nothing is said not to be that is not known`, !none.test(said) && (view.startsWith('job') || /Not known: the daemon has not answered/.test(said)), said.slice(0, 300));
    }
    paper.faults.clear();
    await page.waitForSelector('header[data-connection=live]');
    check('it is asked again', true);
    await page.waitForSelector('main .facts');
    check('and then it is said', /none of its flows collides|where its elephants collide/.test(await text(page)), await text(page));
    paper.ranks = () => [];
    await shown(page, url, 'job/88');
    await page.waitForFunction(() => /Flows\d+, /.test(document.querySelector('main .facts')?.textContent ?? ''));
    const facts = await text(page, 'main .facts');
    check('a job that no plugin reports of has no figures of ranks', /Processesnot known: no NCCL plugin/.test(facts) && !/0 ranks|none stands out/.test(facts), facts);
}

/** Names that mean harm, wherever one stands beside what is a link. */
async function hostile(page, url, paper) {
    for (const s of paper.topology.switches) for (const p of s.ports) if (p.peer_port) p.peer_port = HARM;
    for (const h of paper.topology.hosts) for (const n of h.nics) for (const a of n.attach) a.port = HARM;
    const links = paper.links.bind(paper);
    paper.links = (...of) => links(...of).map((l) => ({ ...l, peer_port: HARM }));
    const path = { ...paper.path(paper.flows[0], paper.number), state: 'unresolved', reason: HARM, pairing: { by: 'wire', host: HARM, device: HARM } };
    path.hops = path.hops.map(({ out: _, in: __, ...h }) => ({ ...h, out_lag: HARM, in_lag: HARM }));
    paper.paths = () => ({ total: 1, records: [path] });
    paper.explain = () => ({ total: 1, records: [path], reverse: [path] });
    paper.findings = () => [{ host: HARM, device: HARM, severity: 'warning', text: HARM, advice: HARM }];
    const views = ['fabric', 'events', 'links', 'flows', 'hosts', 'unseen', 'switch/leaf1', 'link/leaf1/Ethernet50', 'host/gpu1', 'flow/10.1.0.1:49152-10.1.2.2', 'job/88'];
    for (const view of views) {
        await shown(page, url, view);
        await page.waitForFunction(() => document.querySelector('main h1'));
        const said = await page.evaluate(() => [document.body.textContent, ...[...document.querySelectorAll('[title],[aria-label]')].map((e) => `${e.title} ${e.ariaLabel}`)].join(' '));
        // eslint-disable-next-line no-control-regex
        const found = /.{0,40}[\u001b\u202e]/.exec(said);
        check(`${view}: no control character reaches the screen`, !found && said.includes('<U+202E>'), found?.[0] ?? 'none was there');
    }
    check('nor an element', await page.locator('main b', { hasText: 'x' }).count() === 0);
}

/** More than is shown: how many is said, and no sum is taken for that of all. */
async function cut(page, url, paper) {
    const [one] = paper.events(paper.number).filter((e) => e.kind === 'collision' && e.evidence.switch === 'leaf1');
    const many = Array.from({ length: 30 }, (_, i) => ({ ...one, subject: `leaf1/x${i}`, evidence: { ...one.evidence, port: `x${i}` } }));
    paper.events = () => many;
    paper.paths = () => ({ total: 5000, records: paper.flows.map((f) => paper.path({ ...f, job: 88, a: 0, ha: 0, spine: 1 }, paper.number)) });
    const ranks = paper.ranks.bind(paper);
    paper.ranks = () => [...ranks(), ...Array.from({ length: 20 }, (_, i) => ({ comm_id: 'c0ffee88', ranks: 28, job: '88', rank: 8 + i, host: `more${i}`, pid: 1 }))];
    for (const h of paper.topology.hosts) h.nics = Array.from({ length: 8 }, (_, i) => ({ ...h.nics[0], rail: i, addresses: [`10.9.${i}.1`] }));
    await shown(page, url, 'switch/leaf1');
    check('events of a switch: what is left out is counted', /10 more of less weight are not shown here/.test(await text(page)), await page.locator('main article').count().then(String));
    await shown(page, url, 'job/88');
    await page.waitForFunction(() => /Flows\d/.test(document.querySelector('main .facts')?.textContent ?? ''));
    const facts = await text(page, 'main .facts');
    check('a job: the rate is that of the flows that it is of', /Flows5\s000; the 64 fastest: /.test(facts), facts);
    check('and hosts that are not named are counted', /and 16 others/.test(facts), facts);
    check('its flows: how many there are', /gave 64 of 5\s000: the fastest/.test(await text(page)));
    await shown(page, url, 'link/leaf1/Ethernet50');
    await page.getByText('go 5\u202f000 flows.').waitFor();
    check('a link: so do its flows', true);
    await shown(page, url, 'hosts');
    const row = await text(page, 'main tbody tr');
    check('a host: addresses and ports that are left out are counted', /10\.9\.3\.1 and 4 others.*Ethernet1 and 4 others/.test(row), row);
    await shown(page, url, 'imbalance');
    await page.getByRole('button', { name: 'Compute for the last window' }).click();
    const moved = page.getByText('The daemon gave 64 of 66');
    await moved.waitFor();
    check('flows that a plan moves are not called the fastest', !/fastest/.test(await moved.textContent()), await moved.textContent());
}

/** What this page does not know, or is not there, is neither idle nor 0. */
async function unknown(page, url, paper) {
    const imbalance = paper.imbalance.bind(paper);
    paper.imbalance = (n) => imbalance(n).map((r) => (r.name === 'leaf1/up' ? { ...r, verdict: 'unknown' } : r.name === 'leaf2/up' ? { ...r, verdict: 'lopsided' } : r));
    const path = paper.path(paper.flows[0], paper.number);
    const { state: _, rate_bps: __, bytes: ___, ...bare } = path;
    paper.paths = () => ({ total: 1, records: [bare] });
    paper.events = () => [
        { kind: 'moonlight', subject: 'leaf1/x', message: 'a kind of a later version', severity: 'dire', evidence: { shape: 'round' } },
        { kind: 'clock_skew', severity: 'warning', subject: 'poll1', message: 'its clock is behind', evidence: { program: 'fabrictrace-agent', offset_ms: -400 } },
    ];
    await shown(page, url, 'imbalance');
    const groups = await page.getByRole('region', { name: 'Imbalance of every group' }).locator('tbody tr').allTextContents();
    check('a verdict that is not there is not idle', /not judged$/.test(groups.find((g) => g.startsWith('leaf1/up')) ?? ''), groups.join(' | '));
    check('one of a later version is shown as it is', /lopsided$/.test(groups.find((g) => g.startsWith('leaf2/up')) ?? ''), groups.join(' | '));
    await shown(page, url, 'switch/leaf1');
    check('so on its switch', /leaf1\/upnot judged/.test(await text(page)), await text(page, 'main .facts'));
    await shown(page, url, 'flows');
    const flow = await text(page, 'main tbody tr');
    check('a flow without a state or a rate', /–data· unknown/.test(flow), flow);
    await shown(page, url, 'events');
    const said = await text(page);
    check('an event of a kind that it does not know', /Moonlight leaf1\/x.*a kind of a later version/.test(said), said);
    check('a clock that is behind by less than a second', /Clock0\.4 s behind/.test(said), said);
}

/** Events that are over: up to the moment that is looked at, and without a gap at each window. */
async function over(page, url, paper) {
    const asked = [];
    paper.over = (query) => {
        asked.push([query.get('from_ms'), query.get('to_ms')].map((ms) => ms && Number(ms)));
        return [...paper.events(paper.number), { kind: 'loss', severity: 'warning', subject: 'x', message: 'it is over', cleared: true, since_ms: 1, time_ms: paper.span(paper.number).window_end_ms, evidence: {} }];
    };
    const then = paper.span(paper.number - 5);
    await shown(page, url, `events?over=1&at=${then.window_start_ms}`);
    await page.getByText('it is over').waitFor();
    check('of a moment before: what came after it is left out', asked[0]?.[1] === then.window_end_ms && asked[0][0] === then.window_end_ms - 3_600_000, JSON.stringify(asked));
    await shown(page, url, 'events?over=1');
    await page.getByText('it is over').waitFor();
    check('of now: up to now', asked.at(-1)[1] === null, JSON.stringify(asked));
    await page.evaluate(() => {
        window.gaps = 0;
        new MutationObserver(() => { if (!/it is over/.test(document.querySelector('main').textContent)) window.gaps++; }).observe(document.querySelector('main'), { childList: true, subtree: true });
    });
    const windows = async (n) => {
        for (let i = 0; i < n; i++) {
            asked.length = 0;
            paper.advance();
            paper.tell();
            await page.waitForFunction((t) => document.querySelector('header').dataset.window === String(t), paper.span(paper.number).window_end_ms);
            while (asked.length === 0) await page.evaluate(() => new Promise(requestAnimationFrame));
            if (asked[0][0] !== paper.span(paper.number - 1).window_end_ms) return false;
        }
        return true;
    };
    check('with each window that closes what came since the one before is asked for alone', await windows(3), JSON.stringify(asked));
    check('a window that closes takes nothing away', await page.evaluate(() => window.gaps) === 0);
    // What was over is told once; what stands goes on, ends, and ages.
    const begun = paper.span(paper.number).window_end_ms;
    const one = { kind: 'loss', severity: 'warning', subject: 'y', message: 'it stands', since_ms: begun, time_ms: begun, evidence: {} };
    paper.over = (query) => { asked.push([Number(query.get('from_ms'))]); return [one]; };
    await windows(1);
    await page.getByText('it stands').waitFor();
    const over = { ...one, message: 'it has ended', cleared: true, time_ms: begun + 2000 };
    paper.over = (query) => { asked.push([Number(query.get('from_ms'))]); return [over]; };
    await windows(1);
    await page.getByText('it has ended').waitFor();
    check('one that ends is there once', await page.getByText('it stands').count() === 0 && await page.getByText('it is over').count() === 1, await text(page));
    paper.over = (query) => { asked.push([Number(query.get('from_ms'))]); return []; };
    await windows(1);
    check('what the answers say no more is kept', await page.getByText('it has ended').count() === 1, await text(page));
    await windows(6);
    await page.getByText('it has ended').waitFor({ state: 'detached' });
    check('for an hour', true);
}

over.paper = { windowMs: 600_000, everyMs: STILL_MS };

/** A window that closes is added to what is known of those before: they are not asked for again. */
async function news(page, url, paper) {
    const asked = [];
    const answer = paper.answer.bind(paper);
    paper.answer = (what, query) => {
        const said = answer(what, query);
        if (what === 'history' || what === 'windows') asked.push({ what, from: Number(query.get('from_ms')), records: said.records.length });
        return said;
    };
    const last = () => paper.span(paper.number).window_end_ms;
    const since = () => paper.span(paper.number - 1).window_end_ms;
    for (const [view, label] of [['imbalance', /over 361 windows/], ['link/leaf1/Ethernet50', /over 361 windows/], ['flow/10.1.0.1:49152-10.1.2.2', undefined]]) {
        await shown(page, url, view);
        await page.waitForFunction(() => /Paths that it took|%/.test(document.querySelector('main').textContent));
        const chart = page.locator('.chart');
        if (label) await chart.waitFor();
        asked.length = 0;
        for (let i = 0; i < 2; i++) {
            paper.advance();
            paper.tell();
            await page.waitForFunction((t) => document.querySelector('header').dataset.window === String(t), last());
        }
        await page.waitForFunction((t) => document.querySelector('.scrub-frame').dataset.last === String(t), last());
        const whole = asked.filter((a) => a.records > 2);
        check(`${view}: of windows and history what is new alone is asked for`, whole.length === 0 && asked.some((a) => a.what === 'history' && a.from === since() && a.records === 1), JSON.stringify(asked));
        // The oldest of them is no longer kept.
        if (label) check(`${view}: and the line has as many windows as before`, label.test(await chart.getAttribute('aria-label')), await chart.getAttribute('aria-label'));
    }
    await shown(page, url, `events?at=${paper.span(paper.number - 3).window_start_ms}`);
    paper.advance();
    paper.tell();
    await page.waitForFunction((t) => document.querySelector('.scrub-frame').dataset.last === String(t), last());
    check('where a moment before is looked at the strip has the windows that close', await page.locator('.moment.past').count() === 1);
}

/** How light a colour is that a page has: of its text, or of what its first canvas is drawn in. */
const light = (page, what) => page.evaluate((of) => {
    const sum = (values) => values.slice(0, 3).reduce((a, b) => a + Number(b), 0) / 765;
    if (of === 'text') return sum(getComputedStyle(document.body).color.match(/[\d.]+/g));
    const canvas = document.querySelector(of);
    const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, 18 * devicePixelRatio); // names
    let most = [0, 0, 0, 0];
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > most[3]) most = [...data.slice(i, i + 4)];
    return sum(most);
}, what);

/** The same of the canvas once it is drawn anew, in light colours. */
async function drawnLight(page) {
    for (const until = Date.now() + WAIT_MS; await light(page, '.heat canvas') <= 0.5 && Date.now() < until;) await page.waitForTimeout(20);
    return light(page, '.heat canvas');
}

/** Light or dark as the system is, or as it was chosen, also after a reload; on paper as paper needs it. */
async function theme(page, url) {
    const other = await newPage(page.context());
    for (const p of [page, other]) {
        await p.emulateMedia({ colorScheme: 'dark' });
        await shown(p, url, 'job/88');
        await p.waitForSelector('.heat canvas');
    }
    const becomes = (p, dark) => p.waitForFunction((is) => (getComputedStyle(document.body).color.match(/\d+/)[0] > 128) === is, dark);
    check('the theme is that of the system', await light(page, 'text') > 0.7, await light(page, 'text'));
    await page.keyboard.press('t');
    await becomes(page, false);
    await becomes(other, false);
    check('one that is chosen is that of the other tabs, too', true);
    await page.reload();
    await settled(page);
    check('and after a reload', await light(page, 'text') < 0.3, await light(page, 'text'));
    await page.keyboard.press('t');
    await becomes(page, true);
    await page.emulateMedia({ colorScheme: 'light' });
    await becomes(page, false);
    check('back to that of the system, the system is followed', true);
    await page.keyboard.press('t');
    await becomes(page, true);
    await page.waitForFunction(() => document.querySelector('.heat canvas')?.style.width); // drawn: its frame has a width
    const drawn = await drawnLight(page);
    await page.evaluate(() => { for (const d of document.querySelectorAll('details')) d.open = false; });
    await page.emulateMedia({ media: 'print' });
    check('on paper the text is dark', await light(page, 'text') < 0.3, await light(page, 'text'));
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    check('so is what is drawn', drawn > 0.5 && await light(page, '.heat canvas') < 0.5, `${drawn} ${await light(page, '.heat canvas')}`);
    check('and nothing is folded', await page.locator('details:not([open])').count() === 0 && await page.locator('details[open]').count() > 0);
    await page.emulateMedia({ media: 'screen' });
    await page.evaluate(() => dispatchEvent(new Event('afterprint')));
    await becomes(page, true);
    const after = [await drawnLight(page), await page.locator('details[open]').count()];
    check('after it all is as it was', after[0] === drawn && after[1] === 0, after.join());
    await page.evaluate(() => localStorage.clear());
    await other.close();
}

/** Rows that open where there is little room, words that are looked for, and files. */
async function tables(page, url, paper) {
    const rows = page.locator('main tbody tr');
    const becomes = (n) => page.waitForFunction((m) => document.querySelectorAll('main tbody tr').length === m, n);
    await page.setViewportSize({ width: 390, height: 844 });
    await shown(page, url, 'links');
    check('a phone: a column without room is not seen', !await rows.first().getByText('400 Gb/s').isVisible());
    const opens = page.getByRole('button', { name: 'More of this row' }).first();
    await opens.focus();
    await page.keyboard.press('Enter');
    const below = rows.nth(1);
    await below.getByText('400 Gb/s').waitFor();
    check('a row opens to it, by keys', await opens.getAttribute('aria-expanded') === 'true' && /^Speed400 Gb\/sFlows\d+.*Errors0.*Groupleaf1\/up$/.test(await below.textContent()), await below.textContent());
    const box = await page.locator('main thead th:visible').last().boundingBox();
    check('and what has room is not cut off', box.x + box.width <= 390, JSON.stringify(box));
    await page.keyboard.press('c');
    await page.waitForFunction(() => document.getElementById('copy')?.textContent === 'copied');
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    check('a copy has each row once, without marks', /LINK +TO +STATE +USED +SPEED/.test(copied) && /leaf1 Ethernet50 +spine2 +used +\S+ % +400 Gb\/s/.test(copied) && !/[●▸▾]|CSV/.test(copied), copied.slice(0, 400));
    await opens.click();
    await becomes(32);
    check('and folds', true);
    await page.setViewportSize({ width: 1280, height: 800 });
    const field = page.getByRole('searchbox', { name: 'Find' });
    await field.fill('LEAF2 spine3');
    await becomes(2);
    await page.getByRole('link', { name: /^used/ }).click();
    await page.waitForFunction(() => /state=used/.test(location.hash));
    check('words that are looked for stay with another filter, and are in the address', /find-links=LEAF2%20spine3/.test(page.url()) && await rows.count() === 2, page.url());
    await page.goBack();
    await page.waitForFunction(() => !/state=used/.test(location.hash));
    const address = page.url();
    await page.goto('about:blank');
    await page.goto(address);
    await settled(page);
    await becomes(2);
    check('the address alone shows the same', await field.inputValue() === 'LEAF2 spine3' && await page.getByText('2 of 32').count() === 1);
    await field.fill('nowhere');
    await page.getByText('None has nowhere.').waitFor();
    await field.fill('');
    await becomes(32);
    const harm = '=HYPERLINK("x"),\u202e';
    for (const s of paper.topology.switches) if (s.name === 'spine4') s.name = harm;
    for (const s of paper.topology.switches) for (const p of s.ports) if (p.peer === 'spine4') p.peer = harm;
    const links = paper.links.bind(paper);
    paper.links = (...of) => links(...of).map((l) => ({ ...l, switch: l.switch === 'spine4' ? harm : l.switch, peer: l.peer === 'spine4' ? harm : l.peer }));
    await shown(page, url, 'links?sort-links=-link');
    const saved = async (kind) => {
        const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: kind, exact: true }).click()]);
        return [file.suggestedFilename(), readFileSync(await file.path(), 'utf8')];
    };
    const [name, csv] = await saved('CSV');
    const lines = csv.split('\r\n');
    const truth = paper.links(paper.number).find((l) => l.switch === 'leaf1' && l.port === 'Ethernet50');
    check('CSV: named for what it is of', /^paper-links-\d{8}T\d{6}\.csv$/.test(name), name);
    check('CSV: each link, with its figures as they are', lines.length === 34 && lines[0].startsWith('Link,To,State,"Used, share","Speed, b/s",Flows,') &&
        lines.some((l) => l.startsWith(`leaf1 Ethernet50,spine2,used,${truth.utilization},400000000000,${truth.flows},`)), csv.slice(0, 400));
    check('CSV: a name is no formula', lines.some((l) => l.startsWith('"\'=HYPERLINK(""x""),<U+202E> Ethernet1",leaf1,')) && !/^"?=|,"?=/m.test(csv), csv.slice(0, 400));
    const [, json] = await saved('JSON');
    const { records, ...about } = JSON.parse(json);
    check('JSON: with the window that it is of', about.fabric === 'paper' && about.window_end_ms === paper.span(paper.number).window_end_ms && about.rows === 32 && about.total === 32, JSON.stringify(about));
    check('JSON: the same', records.length === 32 && records.some((r) => r.link === 'leaf1 Ethernet50' && r.use === truth.utilization && r.state === 'used'), JSON.stringify(records[0]));
}

/** A link that is going bad is found in the list of all, before it is down. */
async function bad(page, url, paper) {
    const links = paper.links.bind(paper);
    paper.links = (...of) => links(...of).map((l) => (l.switch === 'leaf2' && l.port === 'Ethernet50'
        ? { ...l, errors: 1200, flaps: 16, numbered_flows: 9, resending_flows: 7 } : l.switch === 'leaf1' ? { ...l, errors: 30, flaps: 2 } : l));
    await shown(page, url, 'links');
    const first = () => text(page, 'main tbody tr');
    for (const head of ['Errors', 'Flaps', 'Send again']) {
        await page.getByRole('button', { name: head, exact: true }).click();
        await page.waitForFunction(() => /^leaf2 Ethernet50/.test(document.querySelector('main tbody tr').textContent));
        check(`${head}: the worst link is the first`, true);
    }
    check('with its figures', /1\s200167 of 9/.test(await first()), await first());
    await page.getByRole('link', { name: 'leaf2 Ethernet50', exact: true }).click();
    await page.waitForFunction(() => document.querySelector('main h1')?.textContent === 'Link leaf2 Ethernet50');
    await settled(page);
    check('on its own page, too', /Flapsat least 16 in the last hour/.test(await text(page)), await text(page, 'main .facts'));
}

/** A rank that stands says in what, and for whom, in the list of a job's ranks. */
async function stands(page, url, paper) {
    const ranks = paper.ranks.bind(paper);
    paper.ranks = () => ranks().map((r) => (r.rank === 6 ? { ...r, standing: true, number: 4711, standing_op: 'AllReduce', state: 'in_flight', transfer: 'recv_wait', transfer_peer: 5 } : r));
    await shown(page, url, 'job/88');
    await page.getByRole('button', { name: 'Stands in' }).click();
    await page.waitForFunction(() => /^6/.test(document.querySelector('[aria-label=Ranks] tbody tr')?.textContent ?? ''));
    const row = await text(page, '[aria-label=Ranks] tbody tr');
    check('a rank that stands is the first, and says in what', /AllReduce 4711recv wait from 5/.test(row), row);
}

/** What is passed on or last known says of when it is, for who reads it in another zone or later. */
async function when(page, url, paper) {
    paper.lacking = { partial: true };
    await shown(page, url, 'imbalance');
    const zoned = /paper, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d to \d{4}-/;
    const copied = async () => {
        await page.keyboard.press('c');
        await page.waitForFunction(() => document.getElementById('copy')?.textContent === 'copied');
        await page.waitForFunction(() => document.getElementById('copy')?.textContent !== 'copied');
        return page.evaluate(() => navigator.clipboard.readText());
    };
    check('a copied view has day and zone', zoned.test(await copied()), (await copied()).slice(0, 90));
    const live = await text(page, '.moment');
    check('a window that was seen in part says so, without a history, too', /seen in part/.test(live), live);
    paper.faults.set('imbalance', 503);
    paper.advance();
    paper.tell();
    await page.waitForSelector('header[data-connection=lost]');
    const lost = await text(page, '.moment');
    check('what was last known says of when it is', lost.includes('too much is in progress at once; shown is what was last known, ') && / to .*\d\d:\d\d:\d\d [+-]\d\d:\d\d$/.test(lost), lost);
    check('and so does a copy of it', /, last known: too much/.test(await copied()), (await copied()).slice(0, 160));
}

/** 512 ranks that send to each other, all of them. */
async function wide(page, url, paper) {
    const edges = [];
    for (let a = 0; a < 512; a++) for (let b = 0; b < 512; b++) if (a !== b) edges.push({ src: a, dst: b, op: 'AllToAll', sent_bytes: 1000 + b, step_median_ns: 48_000 });
    paper.matrix = () => [{ comm_id: 'c0ffee88', name: 'world', ranks: 512, members: [], edges }];
    await shown(page, url, 'job/88');
    await page.waitForFunction(() => document.querySelector('.heat canvas')?.width > 500);
    check('a matrix of 512 x 512 is drawn', true);
    check('and its table says how many pairs there are', await page.getByRole('button', { name: / more of 261532$/ }).count() === 1, await page.locator('.more').allTextContents().then(String));
}

/** The way back does not stop at each moment that was passed. */
async function back(page, url, paper) {
    const reaches = (n) => page.waitForFunction((t) => document.querySelector('header').dataset.window === String(t), paper.span(n).window_end_ms);
    await shown(page, url, 'events');
    await page.evaluate(() => { location.hash = '#/imbalance'; });
    await settled(page);
    await page.getByRole('slider', { name: 'Moment' }).focus();
    for (let i = 1; i <= 5; i++) {
        await page.keyboard.press('ArrowLeft');
        await reaches(paper.number - i);
    }
    await page.goBack();
    await reaches(paper.number);
    check('from a moment that was reached in five steps back to now in one', /#\/imbalance$/.test(page.url()), page.url());
    await page.goBack();
    await page.waitForFunction(() => document.querySelector('main').dataset.shown === 'events');
    check('and on to the view before', true);
    await page.setViewportSize({ width: 1280, height: 600 });
    await shown(page, url, 'links');
    const row = page.locator('main tbody tr').nth(20).getByRole('link').first();
    await row.scrollIntoViewIfNeeded();
    const y = () => page.evaluate(() => scrollY);
    await page.waitForFunction(() => history.state?.scroll === scrollY && scrollY > 0);
    const left = await y();
    await row.click();
    await page.waitForFunction(() => /^Link /.test(document.querySelector('main h1')?.textContent ?? ''));
    await settled(page);
    check('another view begins at its top', await y() === 0, String(await y()));
    await page.goBack();
    await page.waitForFunction((was) => document.querySelector('main').dataset.shown === 'links' && Math.abs(scrollY - was) < 2, left);
    check('and the way back leads to the row that one came from', true);
    await shown(page, url, `imbalance?at=${paper.span(paper.number + 9).window_start_ms}`);
    await page.keyboard.press('[');
    await reaches(paper.number - 1);
    check('[ from a moment that is not there goes to the window before the last', true);
}

/** Jobs that only their flows are known of, beside those with ranks. */
async function jobs(page, url, paper) {
    const asked = [];
    page.on('request', (r) => { if (/\/ranks/.test(r.url())) asked.push(new URL(r.url()).search); });
    const answer = paper.answer.bind(paper);
    paper.answer = (what, query) => (what === 'rhythms' && !query.get('job') ? { total: 2, records: [{ job: '88' }, { job: '89', messages: 9 }] } : answer(what, query));
    await shown(page, url, 'jobs');
    await page.waitForFunction(() => document.querySelectorAll('[aria-label=Jobs] tbody tr').length === 2);
    const rows = await page.locator('[aria-label=Jobs] tbody tr').allTextContents();
    check('a job that no plugin reports of is listed, without figures of ranks', /^888/.test(rows[0]) && /^89––––/.test(rows[1]), rows.join(' | '));
    await page.getByRole('link', { name: '89', exact: true }).click();
    await page.waitForFunction(() => /Job 89/.test(document.querySelector('main h1')?.textContent));
    await settled(page);
    check('of a job the ranks are asked that are its own', asked.includes('?job=89'), asked.join());
    await shown(page, url, 'host/gpu1');
    check('so of a host', asked.includes('?host=gpu1'), asked.join());
}

/** Flows that are more than a port counted are not traffic without flows. */
async function more(page, url, paper) {
    const links = paper.links.bind(paper);
    paper.links = (...of) => links(...of).map((l) => ({ ...l, unexplained_bytes: l.port === 'Ethernet50' ? -2.5e9 : 2.5e9 }));
    for (const [port, said] of [['Ethernet50', '2.50 GB: of flows, but not counted'], ['Ethernet51', '2.50 GB: counted, but of no flow that was seen']]) {
        await shown(page, url, `link/leaf1/${port}`);
        check(`${port}: ${said}`, (await text(page)).includes(said), await text(page, 'main .facts'));
    }
    paper.isUnseen = (l) => l >= 2;
    paper.events = () => [0, 1, 2, 3].map((i) => ({ kind: 'link_down', severity: 'critical', subject: `leaf1/${i}`, evidence: { switch: 'leaf1', port: `Ethernet${49 + i}`, peer: `spine${i + 1}`, peer_port: 'Ethernet1' } }));
    await shown(page, url, 'fabric');
    await page.locator('.troubled-links').getByRole('link', { name: /^and \d+ more$/ }).click();
    await page.waitForFunction(() => document.querySelector('main h1')?.textContent === 'Links');
    const states = (await page.locator('main tbody tr td:nth-child(3)').allTextContents()).map((t) => t.trim().split(' ').pop());
    check('what is more of links down and not seen leads to both', states[0] === 'down' && states.includes('unseen'), states.join());
}

/** What somebody looks for who is woken: on the first page, without scrolling; on a phone as well. */
async function night(page, url) {
    await shown(page, url, 'fabric');
    const line = await text(page, '[aria-labelledby=active-now] li');
    check('a job that hangs is on the first page, and first', /Communication hangs job 88/.test(line), line);
    const nav = page.getByRole('navigation', { name: 'Views' });
    await nav.getByRole('link', { name: 'Jobs' }).click();
    await page.waitForSelector('[aria-label=Jobs] tbody tr');
    check('and in the list of jobs', /^88.*Communication hangs/.test(await text(page, '[aria-label=Jobs] tbody tr')), await text(page, '[aria-label=Jobs] tbody tr'));
    check('and counted in the head', /Jobs 1/.test(await nav.textContent()), await nav.textContent());
    check('the head says in which zone its times are', /live, (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d to (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d [+-]\d\d:\d\d$/.test(await text(page, '.moment')), await text(page, '.moment'));
    const focus = () => page.evaluate(() => document.activeElement.textContent);
    await nav.getByRole('link', { name: 'Hosts' }).focus();
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Tab');
    check('keys stay in the list of keys', await focus() === 'Close', await focus());
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    check('and go on from where they were', await focus() === 'Hosts', await focus());
    await page.getByRole('link', { name: 'leaf1 Ethernet49', exact: true }).first().focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('main h1')?.textContent === 'Link leaf1 Ethernet49' && document.activeElement.tagName === 'MAIN');
    await settled(page);
    await page.keyboard.press('Tab');
    check('where a link leads, keys go on with the first of what is shown', await page.evaluate(() => document.activeElement.closest('main') !== null && document.activeElement.textContent) === 'leaf1', await focus());
    await page.setViewportSize({ width: 390, height: 844 });
    for (const view of ['fabric', 'imbalance', 'flow/10.1.0.1:49152-10.1.2.2']) {
        await shown(page, url, view);
        await page.waitForFunction(() => /\d/.test(document.querySelector('main')?.textContent ?? ''));
        const hidden = await nav.locator('a').evaluateAll((all) => all.filter((a) => a.getBoundingClientRect().right > innerWidth).map((a) => a.textContent));
        check(`a phone, ${view}: each view can be seen in the head`, hidden.length === 0, hidden.join());
        const over = await page.locator('main dt').evaluateAll((all) => all.filter((dt) => dt.scrollWidth > dt.clientWidth).map((dt) => dt.textContent));
        check(`a phone, ${view}: no name is written over its figure`, over.length === 0, over.join());
    }
    await shown(page, url, 'fabric');
    const active = await page.getByRole('heading', { name: 'Active now' }).boundingBox();
    check('a phone: what is active is seen at once', active.y < 500, JSON.stringify(active));
    await shown(page, url, 'imbalance');
    const box = await page.getByRole('region', { name: 'Imbalance of every group' }).locator('tbody td').last().boundingBox();
    check('a phone: verdicts are not cut off', box.x + box.width <= 390, JSON.stringify(box));
    await page.setViewportSize({ width: 1280, height: 800 });
}

/** Of a large fabric it stands above what is drawn. */
async function large(page, url) {
    await page.setViewportSize({ width: 1280, height: 800 });
    await shown(page, url, 'fabric');
    await page.waitForSelector('.matrix canvas');
    const active = await page.getByRole('heading', { name: 'Active now' }).boundingBox();
    const first = await page.locator('.matrix').first().boundingBox();
    check('what is active stands above the matrices', active.y < first.y && active.y < 400, `${active.y} ${first.y}`);
}
large.paper = { leaves: 96, spines: 8, flows: 500 };

const PARTS = { diagnosis, tables, news, theme, night, large, hostile, jobs, more, back, wide, when, stands, bad, over, unknown, cut, past, direct, refused };

await withBrowser(async (context) => {
    for (const [name, work] of Object.entries(PARTS)) {
        if (part && part !== name) continue;
        await withPaper(new Paper({ windowMs: STILL_MS, ...work.paper }), files, async (url, paper) => {
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
