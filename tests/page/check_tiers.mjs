// SPDX-License-Identifier: Apache-2.0
// The page over fabrics of three tiers on paper (tiers.mjs): a small one drawn, with the links of both
// layers, those that are down or not seen in each, and the way down to a flow that turns at a
// superspine; one of 512 leaves as matrices, in which pods and planes stand side by side.
//
// usage: check_tiers.mjs FILES FOLDER    FILES: the page as built
import { join } from 'node:path';
import { axe, check, newPage, settled, summary, withBrowser } from './browser.mjs';
import { STILL_MS, withPaper } from './paper.mjs';
import { Tiers } from './tiers.mjs';

const [files, shots] = process.argv.slice(2);
const LOOKS = [['light', {}], ['dark', { dark: true }], ['phone', { width: 390, height: 844 }]];
const VIEWS = ['fabric', 'imbalance', 'links', 'switch/spine1', 'switch/super1', 'link/spine1/Ethernet101', 'imbalance/group/spine1%2Fup'];

const heading = (page) => page.locator('main h1').first().textContent();

async function looks(context, url, size, views) {
    for (const [look, options] of LOOKS) {
        const page = await newPage(context, options);
        const wrong = [];
        for (const view of views) {
            await page.goto(`${url}#/${view}`);
            await settled(page);
            for (const w of await axe(page)) wrong.push(`${view}: ${w}`);
            const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            if (wide > 0) wrong.push(`${view}: ${wide} pixels wider than the screen`);
            await page.screenshot({ path: join(shots, `tiers-${size}-${look}-${view.replace(/\W+/g, '-')}.png`), fullPage: true });
        }
        check(`three tiers, ${size}, ${look}: axe finds nothing serious, nothing is wider than the screen`, wrong.length === 0, wrong.join('; '));
        check(`three tiers, ${size}, ${look}: nothing complains`, page.complaints.length === 0, page.complaints.slice(0, 5).join('; '));
        await page.close();
    }
}

async function drawn(context, url, paper) {
    const page = await newPage(context);
    await page.goto(`${url}#/fabric`);
    await settled(page);
    await page.waitForSelector('.drawing svg');
    check('each direction of both layers is a line', await page.locator('.way').count() === 2 * paper.cables().length, `${await page.locator('.way').count()}`);
    const rows = await page.locator('.drawing a.box').evaluateAll((boxes) => boxes.map((b) => [b.querySelector('title').textContent.split(':')[0], Number(b.querySelector('rect').getAttribute('y'))]));
    const height = (kind) => new Set(rows.filter(([name]) => name.startsWith(kind)).map(([, y]) => y));
    const [top, middle, bottom] = ['super', 'spine', 'leaf'].map(height);
    check('superspines stand above spines, spines above leaves, a row each', top.size === 1 && middle.size === 1 && bottom.size === 1 && [...top][0] < [...middle][0] && [...middle][0] < [...bottom][0], rows.join(' '));
    const names = async (kind) => (await page.locator('.troubled-links span', { hasText: kind }).allTextContents()).map((t) => t.replace(/\s+/g, ' '));
    const down = (await names('down')).join(', ');
    check('the links that are down of both layers are named', /leaf6 Ethernet50 to spine4/.test(down) && /spine4 Ethernet102 to super4/.test(down), down);
    const unseen = (await names('unseen')).join(', ');
    check('and the link of the upper layer that is not seen', /spine2 Ethernet101 to super3/.test(unseen), unseen);
    await page.locator('.drawing').focus();
    await page.keyboard.press('End');
    const said = await page.locator('.readout').first().textContent();
    check('keys reach the last link of the upper layer', /^super4 Ethernet2 to spine4 Ethernet102: down/.test(said), said);
    const polarized = page.getByRole('region', { name: 'Active now' }).getByRole('listitem').filter({ hasText: 'Polarization' });
    await polarized.getByRole('link', { name: 'spine1/up', exact: true }).click();
    const chosen = page.getByRole('region', { name: 'Group spine1/up' });
    await chosen.getByText('Verdict').waitFor();
    check('the group of a spine that sends all by one superspine is one click away', /fault: every flow on one of 2 links/.test(await chosen.textContent()), await chosen.textContent());
    await page.getByRole('link', { name: 'spine1 Ethernet101', exact: true }).first().click();
    await page.waitForFunction(() => document.querySelector('main h1')?.textContent === 'Link spine1 Ethernet101');
    const table = page.getByRole('region', { name: 'Flows', exact: true }).locator('tbody tr');
    await table.first().waitFor();
    const want = paper.flows.filter((f) => paper.hops(f).some(([sw, , out]) => sw === 'spine1' && out === 'Ethernet101')).length;
    check('its link has all flows that turn at that superspine', want > 5 && await table.count() === want, `${await table.count()} of ${want}`);
    await table.first().getByRole('link').first().click();
    const hops = page.getByRole('region', { name: 'Path, hop by hop' }).locator('tbody tr');
    await hops.first().waitFor();
    const path = await hops.evaluateAll((trs) => trs.map((tr) => tr.children[1].textContent));
    check('a flow between pods has five hops, the third a superspine', path.length === 5 && path[2].startsWith('super') && path[1] === 'spine1', path.join(' '));
    check('three tiers: nothing complains', page.complaints.length === 0, page.complaints.slice(0, 5).join('; '));
    await page.close();
}

async function matrices(context, url, paper) {
    const page = await newPage(context);
    await page.goto(`${url}#/fabric`);
    await settled(page);
    await page.waitForSelector('.matrix canvas');
    const captions = await page.locator('.matrix figcaption').allTextContents();
    check('512 leaves: a matrix for each direction of both layers, pods and planes side by side', captions.length === 4 &&
        ['leaf to spine: 16 ', 'spine to leaf: 16 ', 'spine to superspine: 8 ', 'superspine to spine: 8 '].every((t, i) => captions[i].startsWith(t)), captions.join('; '));
    const above = page.locator('.matrix').nth(2);
    await above.locator('.matrix-frame').focus();
    const readout = () => page.locator('.readout').first().textContent();
    const first = await readout();
    check('the hot link of the upper layer is at its place', /^spine1 Ethernet101 to super1 Ethernet1: \d/.test(first), first);
    for (let i = 0; i < paper.pods; i++) await page.keyboard.press('ArrowRight');
    const next = await readout();
    check('arrows step over what lies between two planes', /^spine2 Ethernet101 to super9 /.test(next), next);
    await page.keyboard.press('Home');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('main h1')?.textContent === 'Link spine1 Ethernet101');
    check('Enter opens it', true, await heading(page));
    await page.goto(`${url}#/fabric`);
    await settled(page);
    const canvas = page.locator('.matrix').nth(0).locator('canvas');
    await canvas.hover(); // waits until its size, which follows from the screen's, stands
    const { width, height } = await canvas.boundingBox();
    await canvas.click({ position: { x: width - 4, y: height - 4 } });
    await page.waitForFunction(() => document.querySelector('main h1')?.textContent?.startsWith('Link leaf512 '));
    check('a click on the last cell opens the last link', (await heading(page)) === 'Link leaf512 Ethernet56', await heading(page));
    check('512 leaves: nothing complains', page.complaints.length === 0, page.complaints.slice(0, 5).join('; '));
    await page.close();
}

await withBrowser(async (context) => {
    await withPaper(new Tiers({ windowMs: STILL_MS, pods: 2, leaves: 3, spines: 2, reach: 2 }), files, async (url, paper) => {
        await looks(context, url, 'small', VIEWS);
        await drawn(context, url, paper);
    });
    await withPaper(new Tiers({ windowMs: STILL_MS, pods: 16, leaves: 32, spines: 8, reach: 8, flows: 20_000 }), files, async (url, paper) => {
        await looks(context, url, 'large', ['fabric']);
        await matrices(context, url, paper);
    });
});
process.exit(summary());
