// SPDX-License-Identifier: Apache-2.0
// A part of check_states.mjs: all that is known of what stands in a job.
import { join } from 'node:path';
import { axe, check, shown } from './browser.mjs';

/** A name that means harm. */
export const HARM = 'p\u202e\u001b[31m<b>x</b>';

const shots = process.argv[3];

/** What stands in a job: which process, transfer and queue pair, and what second sources say. */
export async function diagnosis(page, url, paper) {
    const answer = paper.answer.bind(paper);
    const since = paper.span(paper.number - 3).window_end_ms;
    const more = {
        process: 'stopped', gpu: '0000:17:00.0', transfer: 'recv_flush_wait', transfer_since_ms: since - 5000, channel: 3, qp: 0x1a2, second_opinions: [
            { source: 'ras', time_ms: since, agrees: true, text: 'NCCL RAS has rank 1 behind the others' },
            { source: 'flight_recorder', time_ms: since, agrees: false, text: `rank 1 is in it${HARM}` },
        ],
    };
    paper.answer = (what, query) => {
        const said = answer(what, query);
        return what === 'diagnoses' ? { ...said, records: said.records.map((d) => ({ ...d, ...more })) } : said;
    };
    const card = () => page.getByRole('region', { name: 'Diagnosis', exact: true }).locator('article').first();
    const facts = async () => {
        await shown(page, url, 'job/88');
        await card().locator('.facts').waitFor();
        return Object.fromEntries(await card().locator('.facts > div').evaluateAll((all) => all.map((d) => [d.querySelector('dt').textContent, d.querySelector('dd').textContent])));
    };
    const of = await facts();
    check('the process: its number, and what the kernel says of it', of.Process === '4001, stopped by a signal or a debugger' && of.GPU === '0000:17:00.0', JSON.stringify(of));
    check('the transfer: channel, state, in words and as records have it, since when', /^channel 3: received, on its way to the GPU \(recv_flush_wait\), since (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d, 3 h$/.test(of.Transfer), of.Transfer);
    check('the queue pair, as tools print it', of['Queue pair'] === '0x1a2 (418)', of['Queue pair']);
    const opinions = of['Second sources'];
    check('second sources: who agrees and who contradicts, with what they say', /NCCL RAS agrees: NCCL RAS has rank 1 behind the others/.test(opinions) && /Flight Recorder contradicts: rank 1 is in it/.test(opinions) && opinions.includes('<U+202E>'), opinions);
    await page.screenshot({ path: join(shots, 'diagnosis.png'), fullPage: true });
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 390, height: 844 });
    await facts();
    const wide = await card().locator('*').evaluateAll((all) => all.filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.textContent));
    check('on a phone nothing of it is cut off', wide.length === 0, wide.join(' | '));
    const wrong = await axe(page);
    check('on a phone at night axe finds nothing serious', wrong.length === 0, wrong.join('; '));
    await card().scrollIntoViewIfNeeded();
    await card().screenshot({ path: join(shots, 'diagnosis-phone-night.png') });
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1280, height: 800 });
    for (const key of Object.keys(more)) delete more[key];
    const bare = await facts();
    check('what is not known is left out', ['GPU', 'Transfer', 'Queue pair', 'Second sources'].every((k) => !(k in bare)) && bare.Process === '4001', JSON.stringify(bare));
    Object.assign(more, { process: 'frozen_in_time', transfer: 'moon_wait', second_opinions: [{ source: 'oracle' }] });
    const later = await facts();
    check('values of a later version are shown as they are', later.Process === '4001, frozen in time' && later.Transfer === 'moon wait (moon_wait)' && later['Second sources'] === 'oracle says', JSON.stringify(later));
}
