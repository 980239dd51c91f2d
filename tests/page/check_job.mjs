// SPDX-License-Identifier: Apache-2.0
// The page of a real daemon over the lab with a training job of 64 ranks, which run.py raised: who is in the
// job, who sends to whom, its flows; then one of its processes is stopped, and the page names it.
//
// usage: check_job.mjs JSON FOLDER    prints "ready", then waits until its standard input ends
import { once } from 'node:events';
import { join } from 'node:path';
import { axe, check, newPage, settled, summary, WAIT_MS, withBrowser } from './browser.mjs';

const told = JSON.parse(process.argv[2]);
const shots = process.argv[3];

const facts = (page) => page.locator('main .facts').first().textContent();

async function listed(page) {
    await page.goto(`${told.url}#/jobs`);
    await settled(page);
    const row = page.getByRole('region', { name: 'Jobs' }).locator('tbody tr').filter({ hasText: told.job });
    await row.waitFor();
    const cells = await row.locator('td').allTextContents();
    check('the job is listed with its processes and hosts', cells[1] === String(told.processes) && cells[3] === String(told.hosts.length), cells.join(' | '));
    await row.getByRole('link', { name: told.job }).click();
    await page.waitForFunction((job) => document.querySelector('main h1')?.textContent === `Job ${job}`, told.job);
    await settled(page);
}

async function members(page) {
    const text = await facts(page);
    check('its facts: processes, communicators, hosts', text.includes(`${told.processes}, in 57 communicators: 256 ranks in all`) && told.hosts.every((h) => text.includes(h)), text);
    check('and flows', text.includes(`${told.flows}, `), text);
    const said = await page.getByRole('region', { name: 'Diagnosis', exact: true }).textContent();
    // A machine that is too busy may make a process slow.
    check('while it is well nothing is said to hang', !/hangs rank/.test(said), said);
    const wrong = await axe(page);
    check('a job: axe finds nothing serious', wrong.length === 0, wrong.join('; '));
    await page.screenshot({ path: join(shots, 'job.png'), fullPage: true });
}

/** Each of its communicators can be chosen; the largest is the first. */
async function communicators(page) {
    const choice = page.getByLabel('Communicator', { exact: true });
    const all = await choice.locator('option').allTextContents();
    check('each communicator can be chosen, the largest first', all.length === 57 && / 64 ranks$/.test(all[0]) && / 2 ranks$/.test(all[56]), all.slice(0, 3).join(' | '));
    const id = await choice.locator('option').nth(all.findIndex((t) => / 4 ranks$/.test(t))).getAttribute('value');
    await choice.selectOption(id);
    await settled(page);
    await page.waitForFunction((c) => document.querySelector('main')?.textContent?.includes(`${c}: 4 ranks`), id);
    const edges = page.getByRole('region', { name: 'What ranks sent each other' });
    await edges.locator('tbody tr').first().waitFor();
    const rows = await edges.locator('tbody tr').evaluateAll((trs) => trs.map((tr) => [...tr.children].slice(0, 2).map((td) => td.textContent)));
    const ring = rows.every(([a, b]) => [1, 3].includes((Number(b.split(' ')[0]) - Number(a.split(' ')[0]) + 4) % 4));
    check('four replicas send to their neighbours in the ring alone', rows.length >= 4 && ring, JSON.stringify(rows));
    check('on four hosts', new Set(rows.map(([a]) => a.split(' ')[1])).size === 4, JSON.stringify(rows));
    const heat = page.locator('.heat canvas');
    const said = () => page.locator('.heat .readout').textContent();
    // What is above it may grow as the page goes on with the daemon.
    for (const deadline = Date.now() + WAIT_MS; !(await said()).startsWith('rank 0 to rank 1: ') && Date.now() < deadline;)
        await heat.hover({ position: { x: 34 + 1.5 * 22, y: 18 + 0.5 * 22 } });
    const text = await said();
    check('a cell of the matrix tells what it stands for', /^rank 0 to rank 1: [\d.]+ .?B, median step /.test(text), text);
    check('the choice is in the address', page.url().includes(`comm=${id}`), page.url());
}

async function flows(page) {
    const table = page.getByRole('region', { name: 'Flows', exact: true });
    await table.locator('tbody tr').first().waitFor();
    await table.locator('tbody tr a').first().click();
    await page.waitForFunction(() => document.querySelector('main h1')?.textContent?.startsWith('Flow '));
    await settled(page);
    const text = await facts(page);
    check('a flow of it names its job, ranks and process', text.includes(told.job) && /rank/i.test(text) && text.includes('trainer'), text);
    await page.goBack();
    await settled(page);
}

async function stopped(page) {
    await page.goto(`${told.url}#/job/${told.job}`);
    await settled(page);
    console.log('ready');
    process.stdin.resume();
    await once(process.stdin, 'end');
    const card = page.getByRole('region', { name: 'Diagnosis', exact: true }).locator('article')
        // On a busy machine transfers are slow in truth, and that is said as well, before or beside it.
        .filter({ has: page.locator('h3', { hasText: 'Rank hangs' }) }).first();
    await card.waitFor({ timeout: 2 * WAIT_MS });
    const title = await card.locator('h3').textContent();
    check('the rank that was stopped is named, with its host', title.includes(`rank ${told.rank} ${told.host} `), title);
    const text = await card.textContent();
    check('with the state of its process', text.includes('stopped'), text);
    const wrong = await axe(page);
    check('a diagnosis: axe finds nothing serious', wrong.length === 0, wrong.join('; '));
    await page.screenshot({ path: join(shots, 'job-stopped.png'), fullPage: true });
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.screenshot({ path: join(shots, 'job-stopped-phone-dark.png') });
}

await withBrowser(async (context) => {
    const page = await newPage(context);
    await page.goto(told.url);
    await page.waitForSelector('header[data-window]', { timeout: 2 * WAIT_MS });
    await listed(page);
    await members(page);
    await communicators(page);
    await flows(page);
    await stopped(page);
    check('nothing complains in the console, nothing is asked of others', page.complaints.length === 0, page.complaints.slice(0, 5).join('; '));
});
process.exit(summary());
