/** The part of `npm run build` that bundles the browser's pages, unless nothing that they are made of has changed. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { collectLicenses, LICENSES } from './bundle/licenses.js';
import { bundlePage, PAGES } from './bundle/web-page.js';
import { makeIfChanged } from './inputs.js';

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

await makeIfChanged({ root, stamp: 'dist/web/inputs.sha256', folders: FOLDERS, files: FILES }, async () => {
  const modules: string[] = [];
  for (const page of PAGES) modules.push(...(await bundlePage(root, page)));
  writeFileSync(join(root, 'dist/web', LICENSES), collectLicenses(root, modules));
});
