import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { BASE_URL, VERIFY_URL } from '../../server/web/docs/addresses.js';
import { type Document, type ResolveLink, renderDocument } from './document.js';
import type { Guide } from './guides.js';
import type { Page } from './layout.js';

/** A page with the audience that the navigation lists it for. */
export type GuidePage = { audience: string; page: Page };

const README = 'README.md';
const QUICK_START = ['Get the command', 'Try it', 'Submit and verify'];
/** The navigation has the documents. */
const LEFT_OUT = ['Documents', 'Licence'];
/** Files beside the documents that they link to. */
const FILES = 'docs/clients/';
/** Of its page the addresses are what settings are about. */
const SETTINGS = 'docs/settings.md';

/** The pages of the documents: two of README, and one of each of the guides. */
export function guidePages(root: string, guides: readonly Guide[]): GuidePage[] {
  const read = (file: string) => readFileSync(join(root, file), 'utf8');
  const readme = readmePages(read(README));
  const anchors = new Map(
    readme.flatMap(({ url, text }) =>
      renderDocument(text, () => undefined).headings.map(({ id }) => [id, url] as const),
    ),
  );
  const pages = new Map(guides.map(({ file, url }) => [file, { url, title: titleOf(read(file)) }]));
  const resolveFrom =
    (from: string): ResolveLink =>
    (href) => {
      const [path = '', anchor] = href.split('#');
      const file = path === '' ? from : normalize(join(dirname(from), path));
      const hash = anchor === undefined ? '' : `#${anchor}`;
      if (file === README) return { url: `${anchors.get(anchor ?? '') ?? '/docs'}${hash}` };
      if (file.startsWith(FILES) && existsSync(join(root, file))) return { url: `/${file}` };
      const page = pages.get(file);
      return page && { url: `${file === from ? '' : page.url}${hash}`, title: page.title };
    };
  const start = readme.map(({ url, text }) => ({
    audience: 'Start',
    page: pageOf(url, renderDocument(addressed(text), resolveFrom(README))),
  }));
  const others = guides.map(({ file, url, audience }) => {
    const text = file === SETTINGS ? read(file) : addressed(read(file));
    return { audience, page: pageOf(url, renderDocument(text, resolveFrom(file))) };
  });
  return [...start, ...others];
}

function titleOf(text: string): string | undefined {
  return /^# (.*)$/m.exec(text)?.[1];
}

function pageOf(url: string, { html, headings, sections }: Document): Page {
  return { url, title: headings[0]?.text ?? url, content: { html }, headings, sections };
}

/** README as two pages: the way to a first proof, and the rest. */
function readmePages(text: string): { url: string; text: string }[] {
  const [introduction = '', ...sections] = text.split(/^(?=## )/m);
  const nameOf = (section: string) => /^## (.*)$/m.exec(section)?.[1] ?? '';
  const others = sections.filter((section) => ![...QUICK_START, ...LEFT_OUT].includes(nameOf(section)));
  const steps = sections.filter((section) => QUICK_START.includes(nameOf(section)));
  if (steps.length !== QUICK_START.length)
    throw new Error(`README.md lacks one of ${QUICK_START.join(', ')}`);
  return [
    { url: '/docs', text: [introduction, ...others].join('') },
    { url: '/docs/quick-start', text: ['# Quick start\n\n', ...steps].join('') },
  ];
}

/** The text with what the server replaces by its addresses. */
export function addressed(text: string): string {
  return text.replaceAll('{base_url}', BASE_URL).replaceAll('{verify_url}', VERIFY_URL);
}
