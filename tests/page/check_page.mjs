// SPDX-License-Identifier: Apache-2.0
// The page of a real daemon over the lab, as run.py raised it: a collision that is made now is on the
// page within two windows, every view is reached by pointer and by keys, nothing complains.
//
// usage: check_page.mjs JSON FOLDER    prints "ready", then waits for the moment the flows began
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { axe, check, newPage, settled, summary, WAIT_MS, withBrowser } from './browser.mjs';

const told = JSON.parse(process.argv[2]);
const shots = process.argv[3];
const port = `${told.switch} ${told.port}`;

const heading = (page) => page.locator('main h1').first().textContent();

async function shot(page, name) {
    await page.screenshot({ path: join(shots, `lab-${name}.png`), fullPage: true });
}

/** By pointer to a view of the head, which then says what it shows. */
async function visit(page, text, title) {
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: text }).click();
    await settled(page);
    check(`${text} is shown by a click`, (await heading(page)).startsWith(title), await heading(page));
    const wrong = await axe(page);
    check(`${text}: axe finds nothing serious`, wrong.length === 0, wrong.join('; '));
    await shot(page, text.toLowerCase().replace(/\W/g, '-'));
}

/** To a part of the page by its address, as a colleague would who was sent it. */
async function open(page, hash, title) {
    await page.goto(`${told.url}#/${hash}`);
    await settled(page);
    await page.waitForFunction((t) => document.querySelector('main h1')?.textContent?.startsWith(t), title);
    check(`${hash} is shown by its address`, true);
}

async function collisionComes(page) {
    await page.goto(`${told.url}#/events`);
    await settled(page);
    check('no collision before it is made', await page.locator('article', { hasText: `Collision ${port}` }).count() === 0);
    console.log('ready');
    const [line] = await once(createInterface({ input: process.stdin }), 'line');
    const began = Number(line);
    await page.locator('article', { hasText: port }).filter({ hasText: 'Collision' }).first().waitFor({ timeout: 2 * WAIT_MS });
    const end = Number(await page.getAttribute('header', 'data-window'));
    const windows = Math.ceil(end / told.window_ms) - Math.ceil(began / told.window_ms);
    check(`the collision on ${port} is on the page within two windows`, windows <= 2, `${windows} windows`);
    const card = page.locator('article', { hasText: port }).filter({ hasText: 'Collision' }).first();
    for (const flow of told.flows) await card.getByRole('link', { name: flow, exact: true }).waitFor();
    check('it names each of the flows', true);
    const wrong = await axe(page);
    check('a collision: axe finds nothing serious', wrong.length === 0, wrong.join('; '));
    await shot(page, 'collision');
}

/** From the event to its link, a flow of it, the hops that the kernel knows. */
async function drillDown(page) {
    await page.locator('article h3').getByRole('link', { name: port }).first().click();
    await settled(page);
    check('event to link', (await heading(page)) === `Link ${port}`, await heading(page));
    const [flow] = told.flows;
    const table = page.getByRole('region', { name: 'Flows', exact: true });
    await table.getByRole('link', { name: flow, exact: true }).click();
    await page.waitForFunction((f) => document.querySelector('main h1')?.textContent === `Flow ${f}` && document.querySelector('main .facts'), flow);
    check('link to flow', true);
    const hops = page.getByRole('region', { name: 'Path, hop by hop' });
    const rows = await hops.locator('tbody tr').evaluateAll((trs) => trs.map((tr) => [...tr.children].slice(1, 4).map((td) => td.textContent)));
    check('the path is the kernel’s, hop by hop', JSON.stringify(rows) === JSON.stringify(told.paths[flow]), `${JSON.stringify(rows)} ${JSON.stringify(told.paths[flow])}`);
    const wrong = await axe(page);
    check('a flow: axe finds nothing serious', wrong.length === 0, wrong.join('; '));
    await shot(page, 'flow');
    await page.getByRole('link', { name: told.paths[flow][1][0], exact: true }).first().click();
    await settled(page);
    check('hop to switch', (await heading(page)) === `Switch ${told.paths[flow][1][0]}`, await heading(page));
    await shot(page, 'switch');
}

async function byKeys(page) {
    const views = ['Fabric', 'Imbalance', 'Collisions and events', 'Links', 'Flows', 'Jobs', 'Hosts', 'What is not seen'];
    for (const [i, title] of views.entries()) {
        await page.keyboard.press(String(i + 1));
        await page.waitForFunction((t) => document.querySelector('main h1')?.textContent?.startsWith(t), title);
        check(`key ${i + 1} shows ${title}`, true);
    }
    await page.keyboard.press('/');
    await page.keyboard.type(told.host);
    await page.waitForSelector('#found li');
    await page.keyboard.press('Enter');
    await page.waitForFunction((h) => document.querySelector('main h1')?.textContent === `Host ${h}`, told.host);
    check('search finds a host by keys', true);
    await shot(page, 'host');
    await page.keyboard.press('1');
    await page.waitForSelector('.drawing svg');
    await page.locator('.drawing').focus();
    await page.keyboard.press('ArrowRight');
    const readout = await page.locator('.readout').first().textContent();
    check('arrows tell of a link of the drawing', /^\S+ \S+ to \S+ \S+:/.test(readout), readout);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('main h1')?.textContent?.startsWith('Link '));
    check('Enter opens it', (await heading(page)) === `Link ${readout.split(' to ')[0]}`, `${await heading(page)}, ${readout}`);
    await page.keyboard.press('?');
    await page.waitForSelector('[role=dialog]');
    await page.keyboard.press('Escape');
    await page.waitForSelector('[role=dialog]', { state: 'detached' });
    check('the keys are told, and go', true);
    const reached = [];
    await page.keyboard.press('1');
    await page.locator('.skip').focus();
    for (let i = 0; i < 20; i++) {
        await page.keyboard.press('Tab');
        reached.push(await page.evaluate(() => document.activeElement?.getAttribute('aria-label') || document.activeElement?.textContent?.trim().slice(0, 40)));
    }
    check('Tab goes through head and views', ['fabrictrace', 'Fabric', 'Imbalance', 'Moment'].every((t) => reached.includes(t)), reached.join(', '));
}

/** What other routing would have done: by keys, as figures beside what was measured, with its error. */
async function whatIf(page) {
    await open(page, 'imbalance', 'Imbalance');
    const region = page.getByRole('region', { name: 'What other routing would have done' });
    check('nothing is computed before it is asked for', await region.locator('figure').count() === 0);
    await region.getByRole('button', { name: 'Compute for the last window' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('section[aria-labelledby=whatif] [role=status]')?.textContent === 'Computed.', null, { timeout: 2 * WAIT_MS });
    const text = await region.innerText();
    const load = region.getByRole('list', { name: 'Hottest link, of its speed, by policy' });
    const policies = await load.locator('.policy').allTextContents();
    check('each policy has its range', ['observed', 'ecmp', 'static', 'greedy', 'plan', 'spray'].every((p) => policies.includes(p)), policies.join(', '));
    const ecmp = await load.locator('li').nth(policies.indexOf('ecmp')).locator('.figures').textContent();
    check('that of ECMP is over its draws', /20 draws$/.test(ecmp), ecmp);
    check('it is said that this is computed', text.includes('not measured:'), text);
    check('what was measured stands beside it', await region.locator('line.measured').count() >= policies.length, text);
    check('never without the error of the model', /loads of links: \d+ compared, median/.test(text), text);
    const slowest = await region.getByRole('list', { name: /^Slowest flow/ }).locator('li').allTextContents();
    const part = (policy) => Number(/([\d.]+) %/.exec(slowest.find((t) => t.startsWith(policy)) ?? '')?.[1]);
    check('a plan is no worse than what was', part('plan') >= part('observed'), slowest.join('; '));
    const wrong = await axe(page);
    check('what-if: axe finds nothing serious', wrong.length === 0, wrong.join('; '));
    await shot(page, 'whatif');
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForFunction(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
    check('what-if fits a phone', true);
    const pale = await axe(page);
    check('what-if in the dark: axe finds nothing serious', pale.length === 0, pale.join('; '));
    await shot(page, 'whatif-phone-dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1440, height: 900 });
}

async function copies(page) {
    await open(page, `link/${told.switch}/${told.port}`, 'Link');
    await page.getByRole('region', { name: 'Flows', exact: true }).waitFor();
    await page.keyboard.press('c');
    await page.waitForFunction(() => document.getElementById('copy')?.textContent === 'copied');
    const text = await page.evaluate(() => navigator.clipboard.readText());
    check('a view is copied as text', text.includes(`Link ${port}`) && told.flows.every((f) => text.includes(f)), text);
    check('with a link to this moment', text.includes(`${told.url}#/link/${told.switch}/${told.port}?at=`), text);
}

await withBrowser(async (context) => {
    const page = await newPage(context);
    await page.goto(told.url);
    await page.waitForSelector('header[data-window]', { timeout: 2 * WAIT_MS });
    await page.waitForSelector('.drawing svg');
    check('the fabric is drawn', await page.locator('.way').count() === told.ways, `${await page.locator('.way').count()} ways`);
    await collisionComes(page);
    await drillDown(page);
    for (const [text, title] of [['Fabric', 'Fabric'], ['Imbalance', 'Imbalance'], ['Events', 'Collisions'], ['Links', 'Links'], ['Flows', 'Flows'], ['Jobs', 'Jobs'], ['Hosts', 'Hosts'], ['Not seen', 'What is not seen']])
        await visit(page, text, title);
    await open(page, `host/${told.host}`, 'Host');
    await open(page, `imbalance/group/${told.switch}%2Fup`, 'Imbalance');
    await whatIf(page);
    await byKeys(page);
    await copies(page);
    check('nothing complains in the console, nothing is asked of others', page.complaints.length === 0, page.complaints.slice(0, 5).join('; '));
});
process.exit(summary());
