// SPDX-License-Identifier: Apache-2.0
// Debian's Chromium under Playwright, and verdicts: what the tests of the page share.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const CHROMIUM = '/usr/bin/chromium';
const FLAGS = [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync',
];
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const WAIT_MS = 60_000 * Number(process.env.FT_SLOWNESS || 1);

let passed = 0;
let failed = 0;

export function check(what, good, detail = '') {
    if (good) passed++;
    else failed++;
    console.log(good ? `ok: ${what}` : `FAIL: ${what}${detail === '' ? '' : `: ${detail}`}`);
    return good;
}

export function summary() {
    console.log(`${passed} passed, ${failed} failed, 0 skipped`);
    return failed ? 1 : 0;
}

/** A browser with a folder of its own, which goes with it. */
export async function withBrowser(work) {
    if (!existsSync(CHROMIUM)) {
        check(`${CHROMIUM} is there`, false, 'packaging/install-deps test');
        return;
    }
    const folder = mkdtempSync(join(tmpdir(), 'fabrictrace-page-'));
    const context = await chromium.launchPersistentContext(folder, {
        executablePath: CHROMIUM, headless: false, args: FLAGS, viewport: { width: 1440, height: 900 }, timeout: WAIT_MS,
        permissions: ['clipboard-read', 'clipboard-write'],
    });
    try {
        await work(context);
    } catch (error) {
        // Whatever was waited for and did not come, with the line that waited.
        check('it comes to its end', false, (error.stack ?? String(error)).replace(/\n\s*/g, ' | '));
    }
    try {
        await context.close();
        rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
    } catch (error) {
        console.log(`left behind: ${folder}: ${error}`); // says nothing about the page
    }
}

/** A page whose complaints are kept in page.complaints. */
export async function newPage(context, options = {}) {
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS);
    page.complaints = [];
    page.on('console', (m) => {
        if (m.type() === 'error' || m.type() === 'warning') page.complaints.push(`${m.text()} ${m.location().url ?? ''}`);
    });
    page.on('pageerror', (e) => page.complaints.push(String(e)));
    page.on('request', (r) => {
        const host = new URL(r.url()).hostname;
        if (host !== '127.0.0.1' && host !== '' && !r.url().startsWith('data:')) page.complaints.push(`asks ${r.url()}`);
    });
    if (options.width) await page.setViewportSize({ width: options.width, height: options.height });
    await page.emulateMedia({ colorScheme: options.dark ? 'dark' : 'light' });
    return page;
}

/** What axe finds serious or critical, in words. */
export async function axe(page) {
    await page.evaluate(AXE);
    const found = await page.evaluate(async () => {
        const result = await window.axe.run(document, { resultTypes: ['violations'] });
        return result.violations
            .filter((v) => v.impact === 'serious' || v.impact === 'critical')
            .map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.target.join(' ')} ${n.any[0]?.message ?? ''}`).join(' | ')}`);
    });
    return found;
}

/** Until the page shows a window and the view that its address names, which has its answers. */
export async function settled(page) {
    await page.waitForSelector('header[data-window]');
    await page.waitForFunction(() => {
        const main = document.querySelector('main');
        const asked = location.hash.replace(/^#\/|\?.*/g, '').split('/').map(decodeURIComponent).join('/') || 'fabric';
        return main?.dataset.shown === asked && !/Asking/.test(main.textContent);
    });
}

/** Opens the page at a view, anew. */
export async function shown(page, url, hash) {
    await page.goto('about:blank');
    await page.goto(`${url}#/${hash}`);
    await settled(page);
}

/** What its first element of a kind says. */
export const text = (page, what = 'main') => page.locator(what).first().textContent();
