/** The part of `npm run build` that renders the documentation of `/docs`, unless nothing that it is made of has changed. */
import { fileURLToPath } from 'node:url';
import { makeIfChanged } from './inputs.js';
import { listGuides } from './site/guides.js';

const BUILT = 'dist/web/docs';
const FOLDERS = ['docs', 'gen/openapi', 'src/generate/site', 'src/server/web/docs'];

const root = fileURLToPath(new URL('../..', import.meta.url));
const guides = listGuides(root).map(({ file }) => file);
const files = [
  'README.md',
  ...guides.filter((file) => !file.startsWith('docs/')),
  `${BUILT}/index.html`,
  'src/client/resource.ts',
  'src/server/web/html.ts',
  'src/web/docs/search-options.ts',
  'package-lock.json',
];
await makeIfChanged({ root, stamp: `${BUILT}/inputs.sha256`, folders: FOLDERS, files }, async () => {
  const { writeSite } = await import('./site/write-site.js');
  writeSite(root, BUILT);
});
