// SPDX-License-Identifier: Apache-2.0
// Makes the page and the C array that the daemon serves it from.
//
// usage: node build.mjs [--out FOLDER] [--c FILE]    FOLDER (default: dist) gets the files as served
//        node build.mjs --tests                     the tests of the page's modules, in tests/out
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { constants, gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const FILES = [
    ['/', 'index.html', 'text/html; charset=utf-8'],
    ['/page.js', 'page.js', 'text/javascript; charset=utf-8'],
    ['/page.css', 'page.css', 'text/css; charset=utf-8'],
    ['/icon.svg', 'icon.svg', 'image/svg+xml'],
    ['/licences.txt', 'licences.txt', 'text/plain; charset=utf-8'],
];

function option(name, standard) {
    const at = process.argv.indexOf(name);
    return at < 0 ? standard : process.argv[at + 1];
}

/** The licence of each package that is in the bundle, as its folder has it. */
function licences(metafile) {
    const packages = new Set();
    for (const input of Object.keys(metafile.inputs)) {
        const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
        if (found) packages.add(found[1]);
    }
    const parts = ['The page of fabrictrace is under the Apache License 2.0. It contains these libraries:\n'];
    for (const name of [...packages].sort()) {
        const folder = join(here, 'node_modules', name);
        const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
        const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
        if (!file) throw new Error(`${name} brings no licence`);
        parts.push(`\n${name} ${about.version} (${about.license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`);
    }
    return parts.join('');
}

async function bundle(out) {
    const common = { bundle: true, minify: true, write: false, absWorkingDir: here, logLevel: 'warning', target: ['es2021'], legalComments: 'none' };
    const script = await build({
        ...common, entryPoints: ['src/main.tsx'], format: 'iife', metafile: true, jsx: 'automatic', jsxImportSource: 'preact',
    });
    const style = await build({ ...common, target: ['chrome111', 'firefox113', 'safari16.2'], entryPoints: ['src/all.css'] });
    mkdirSync(out, { recursive: true });
    writeFileSync(join(out, 'page.js'), script.outputFiles[0].contents);
    writeFileSync(join(out, 'page.css'), style.outputFiles[0].contents);
    writeFileSync(join(out, 'licences.txt'), licences(script.metafile));
    for (const name of ['index.html', 'icon.svg']) writeFileSync(join(out, name), readFileSync(join(here, 'src', name)));
}

function array(name, bytes) {
    const rows = [];
    for (let i = 0; i < bytes.length; i += 24) rows.push(`    ${[...bytes.subarray(i, i + 24)].join(',')},`);
    return `static const uint8_t ${name}[] = {\n${rows.join('\n')}\n};\n`;
}

/** The files, packed, as lib/io/http/http.h serves them. */
function toC(out) {
    const arrays = [];
    const rows = [];
    FILES.forEach(([path, name, type], i) => {
        const plain = readFileSync(join(out, name));
        const packed = gzipSync(plain, { level: constants.Z_BEST_COMPRESSION });
        const tag = createHash('sha256').update(plain).digest('hex').slice(0, 32);
        arrays.push(array(`file_${i}`, packed));
        rows.push(`    {"${path}", "${type}", file_${i}, sizeof(file_${i}), ${plain.length}, "${tag}"},`);
    });
    return `/* Made by page/build.mjs: the page and the libraries in it; /licences.txt names them. */
#include "config.h"

#include "daemon/api/page.h"

${arrays.join('\n')}
const struct ft_http_file ft_page_files[] = {
${rows.join('\n')}
};
const size_t ft_page_file_count = sizeof(ft_page_files) / sizeof(ft_page_files[0]);
`;
}

async function runTests() {
    const out = join(here, 'tests', 'out');
    rmSync(out, { recursive: true, force: true });
    const tests = readdirSync(join(here, 'tests')).filter((f) => f.endsWith('.test.ts'));
    await build({
        entryPoints: tests.map((f) => join(here, 'tests', f)), bundle: true, platform: 'node', format: 'esm', outdir: out,
        outExtension: { '.js': '.mjs' }, logLevel: 'warning', target: 'node18', absWorkingDir: here,
    });
    const files = tests.map((f) => join(out, f.replace(/\.ts$/, '.mjs')));
    const done = spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' });
    return done.status ?? 1;
}

if (process.argv.includes('--tests')) {
    process.exitCode = await runTests();
} else {
    const out = option('--out', join(here, 'dist'));
    await bundle(out);
    const c = option('--c', '');
    if (c) writeFileSync(c, toC(out));
}
