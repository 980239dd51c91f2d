// SPDX-License-Identifier: Apache-2.0
// The page of real daemons behind nginx, each below a path (proxied.py), one of which wants a token: everything is
// asked for below that path, and the token is where it has to be and nowhere else.
//
// usage: check_proxy.mjs JSON FOLDER
import { join } from 'node:path';
import { axe, check, newPage, settled, summary, withBrowser } from './browser.mjs';

const told = JSON.parse(process.argv[2]);
const shots = process.argv[3];
const BASE = `${told.url}/fabrictrace/`;

/** Everything that a page asks for, with what it showed. */
async function listen(page) {
    page.asked = [];
    page.on('request', (r) => page.asked.push({ url: r.url(), shown: r.headers()['authorization'] ?? '' }));
}

const field = (page) => page.getByLabel('Token', { exact: true });
const isLocked = (page) => page.getByRole('heading', { name: 'This daemon wants a token' }).waitFor();
const stored = (page) => page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie]));

async function enter(page, text) {
    await field(page).fill(text);
    await page.keyboard.press('Enter');
}

async function wrongAndRight(page) {
    await page.goto(`${told.url}/fabrictrace#/imbalance`);
    await isLocked(page);
    check('without a token the page asks for it, and shows nothing', await page.locator('[role=slider], .search, main table').count() === 0);
    check('the field has the focus', await field(page).evaluate((e) => e === document.activeElement));
    for (const look of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme: look });
        const wrong = await axe(page);
        check(`${look}: axe finds nothing serious`, wrong.length === 0, wrong.join('; '));
        await page.screenshot({ path: join(shots, `token-${look}.png`) });
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await enter(page, 'not-the-token');
    await page.getByRole('alert').filter({ hasText: 'The daemon refuses this token.' }).waitFor();
    check('a wrong token is refused, and not kept', await stored(page) === '[{},{},""]', await stored(page));
    const before = page.asked.length;
    await enter(page, 'Zürich');
    await page.getByRole('alert').filter({ hasText: 'This is no token' }).waitFor();
    check('what cannot be one is not sent', page.asked.length === before);
    await page.waitForTimeout(2 * told.window_ms + 2000);
    check('while it is locked nothing is asked', page.asked.length === before, page.asked.slice(before).map((a) => a.url).join());
    await enter(page, told.token);
    await settled(page);
    check('with the right one the view of the address is shown', (await page.locator('main h1').textContent()) === 'Imbalance' && page.url() === `${BASE}#/imbalance`, page.url());
}

/** Windows come by the stream, not by asking every two seconds. */
async function streams(page) {
    const shown = () => page.getAttribute('header', 'data-window').then(Number);
    const first = await shown();
    page.asked.length = 0;
    await page.waitForFunction((t) => Number(document.querySelector('header').dataset.window) >= t, first + 5 * told.window_ms);
    check('windows come by the stream', page.asked.every((a) => !a.url.includes('clock_skew')) && page.asked.some((a) => a.url.includes('/imbalance')), page.asked.map((a) => a.url).join(' '));
}

async function views(page) {
    for (const view of ['fabric', 'imbalance', 'events', 'links', 'flows', 'jobs', 'hosts', 'unseen', 'switch/leaf1']) {
        await page.goto(`${BASE}#/${view}`);
        await settled(page);
    }
    await page.locator('header .brand').click();
    await page.waitForSelector('.drawing svg');
    check('each view is shown below the path', page.url().startsWith(`${BASE}#/fabric`), page.url());
    await page.goBack();
    await page.waitForFunction(() => document.querySelector('main').dataset.shown === 'switch/leaf1');
    check('and the way back', true);
}

async function reload(context, page) {
    await page.reload();
    await settled(page);
    const kept = await stored(page);
    check('a reload keeps it, in this tab alone', kept === JSON.stringify([{ 'fabrictrace token of /fabrictrace/': told.token }, {}, '']), kept);
    const other = await newPage(context);
    await other.goto(page.url());
    await isLocked(other);
    check('another tab is asked for it', true);
    await other.close();
    await page.goto(`${told.url}/other/#/links`);
    await settled(page);
    const there = page.asked.filter((a) => a.url.startsWith(`${told.url}/other/`));
    check('the daemon beside it is not shown it', there.length > 3 && there.every((a) => a.shown === ''), JSON.stringify(there.slice(0, 3)));
    check('and needs no way out', await page.getByRole('button', { name: 'Log out' }).count() === 0);
    await page.goto(`${BASE}#/links`);
    await settled(page);
}

async function logOut(page) {
    await page.getByRole('button', { name: 'Log out' }).click();
    await isLocked(page);
    check('after logging out nothing is kept', await stored(page) === '[{},{},""]', await stored(page));
    await page.reload();
    await isLocked(page);
    await page.goBack();
    await settled(page);
    await page.goBack();
    await isLocked(page);
    check('nor shown again by the way back', page.url().startsWith(BASE), page.url());
    await enter(page, told.token);
    await settled(page);
    // As the browser does with a page that it kept, where the tab has logged out since.
    await page.evaluate(() => {
        sessionStorage.clear();
        dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }));
    });
    await isLocked(page);
    check('nor by the browser, which keeps pages that were left', true);
}

async function inTheClear(context) {
    const page = await newPage(context);
    await page.addInitScript(() => Object.defineProperty(globalThis, 'isSecureContext', { value: false }));
    await page.goto(BASE);
    await isLocked(page);
    check('over plain HTTP from elsewhere it cannot be entered', await field(page).count() === 0 && await page.getByRole('alert').count() === 1);
    await page.close();
}

await withBrowser(async (context) => {
    const page = await newPage(context);
    await listen(page);
    const all = [];
    page.on('request', (r) => all.push(r.url()));
    await wrongAndRight(page);
    await streams(page);
    await views(page);
    await reload(context, page);
    await logOut(page);
    await inTheClear(context);
    const outside = all.filter((u) => !u.startsWith(BASE) && !u.startsWith(`${told.url}/other/`) && !u.startsWith(`${told.url}/fabrictrace#`) && u !== `${told.url}/fabrictrace`);
    check('everything is asked for below the path', outside.length === 0, outside.slice(0, 3).join());
    check('no address has the token', all.every((u) => !u.includes(told.token)) && all.length > 50, String(all.length));
    const other = page.complaints.filter((c) => !/status of 401/.test(c));
    check('nothing complains in the console', other.length === 0, other.slice(0, 5).join('; '));
});
process.exit(summary());
