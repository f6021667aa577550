/** The part of `npm run build` that bundles the browser's pages, unless nothing that they are made of has changed. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { collectLicenses, LICENSES } from './bundle/licenses.js';
import { bundlePage, PAGES } from './bundle/web-page.js';
import { filesIn } from './files-in.js';

/** All that a page can be made of. */
const FOLDERS = ['src/web', 'src/proof', 'src/protocol', 'src/client', 'gen/attestation'];
const FILES = [
  'src/generate/build-web.ts',
  'src/generate/bundle/licenses.ts',
  'src/generate/bundle/web-page.ts',
  'src/server/web/look.css',
  'src/server/web/start/favicon.svg',
  'package-lock.json',
];

const root = fileURLToPath(new URL('../..', import.meta.url));
const stamp = join(root, 'dist/web/inputs.sha256');

function hashInputs(): string {
  const hash = createHash('sha256');
  const paths = [
    ...FOLDERS.flatMap((folder) => filesIn(join(root, folder))),
    ...FILES.map((file) => join(root, file)),
  ];
  for (const path of paths.sort()) {
    hash
      .update(`${relative(root, path)}\0`)
      .update(readFileSync(path))
      .update('\0');
  }
  return hash.digest('hex');
}

const inputs = hashInputs();
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== inputs) {
  const modules: string[] = [];
  for (const page of PAGES) modules.push(...(await bundlePage(root, page)));
  writeFileSync(join(root, 'dist/web', LICENSES), collectLicenses(root, modules));
  writeFileSync(stamp, inputs);
}
