import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A document of the repository that is a page: its file, its address, and for whom it is. */
export type Guide = { file: string; url: string; audience: string; about: string };

const ROW = /^\| (.+?) \| ?(.*?) ?\|$/;
const LINK = /\[[^\]]+\]\(([^)]+\.md)\)/g;

/** The documents that README's table names, in its order. Throws if there is no such table. */
export function listGuides(root: string): Guide[] {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const [, table = ''] = /^## Documents\n(.*?)(?=^## |$(?![\s\S]))/ms.exec(readme) ?? [];
  let audience = '';
  const guides = table.split('\n').flatMap((line) => {
    const [, name = '', about = ''] = ROW.exec(line) ?? [];
    audience = /^\*\*(.+)\*\*$/.exec(name)?.[1] ?? audience;
    return [...name.matchAll(LINK)].map(([, file = '']) => ({ file, url: guideUrl(file), audience, about }));
  });
  if (guides.length === 0) throw new Error('README.md has no table of documents');
  return guides;
}

/** `docs/keys.md` is `/docs/keys`, `test/chaos/README.md` is `/docs/test-chaos`. */
function guideUrl(file: string): string {
  const name = file.replace(/^docs\//, '').replace(/(?:\/README)?\.md$/, '');
  return `/docs/${name.toLowerCase().replaceAll('/', '-')}`;
}
