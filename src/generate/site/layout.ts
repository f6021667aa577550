import { VERIFY_URL } from '../../server/web/docs/addresses.js';
import { type Html, html } from '../../server/web/html.js';
import type { Heading, Section } from './document.js';

/** A page: its address, its title, its content, the headings that are listed beside it, and what the search finds in it. */
export type Page = {
  url: string;
  title: string;
  content: Html;
  headings: readonly Heading[];
  sections: readonly Section[];
};

type Link = { url: string; title: string };

/** Pages that unfold; from elsewhere there is a link to the section `url`. */
type Fold = { title: string; url: string; pages: Link[] };

/** A part of the navigation: pages, and groups of pages that unfold on each other. */
export type NavGroup = { title: string; pages: Link[]; folds: Fold[] };

/** The document of a page, made of the one that Vite built: `shell` has scripts and styles, and a place for the page. */
export function layOut(shell: string, page: Page, nav: readonly NavGroup[]): string {
  const title = page.url === '/docs' ? 'Attestation service' : `${page.title} · Attestation service`;
  return (
    shell
      .replace(/<title>.*<\/title>/, () => html`<title>${title}</title>`.html)
      // So that the colours that the reader chose are there before anything is painted.
      .replace('<script type="module"', '<script type="module" blocking="render"')
      .replace('<!--page-->', () => bodyOf(page, nav).html)
  );
}

function bodyOf(page: Page, nav: readonly NavGroup[]): Html {
  return html`<a class="skip" href="#content">Skip to content</a>
<header class="top">
<button type="button" class="menu" popovertarget="pages">Menu</button>
<a class="brand" href="/docs"><img src="/favicon.svg" alt="" width="24" height="24">Attestation service</a>
<nav class="places" aria-label="Service"><a href="/">Home</a> <a href="${VERIFY_URL}/">Verify</a></nav>
<span class="tools"></span>
</header>
<div class="shell">
<nav class="side" id="pages" popover aria-label="Documentation">${nav.map((group) => navGroup(group, page.url))}</nav>
<main id="content"><article>${page.content}</article>
${neighbours(page, nav)}</main>
${contents(page)}
</div>`;
}

function navGroup({ title, pages, folds }: NavGroup, current: string): Html {
  // The calls are half of all links: pages that are about something else do without them.
  const isHere = [...pages, ...folds.flatMap((fold) => fold.pages)].some(({ url }) => url === current);
  const unfolding = folds.map((fold) => {
    const isOpen = fold.pages.some(({ url }) => url === current);
    return html`<details${isOpen ? html` open` : undefined}><summary>${fold.title}</summary>${linkList(fold.pages, current)}</details>`;
  });
  const links = isHere ? pages : [...pages, ...folds];
  return html`<p class="title">${title}</p>${linkList(links, current)}${isHere ? unfolding : undefined}`;
}

function linkList(links: readonly Link[], current: string): Html {
  const items = links.map(
    ({ url, title }) =>
      html`<li><a href="${url}"${url === current ? html` aria-current="page"` : undefined}>${title}</a></li>
`,
  );
  return html`<ul>${items}</ul>`;
}

function neighbours({ url }: Page, nav: readonly NavGroup[]): Html {
  const all = nav.flatMap(({ pages, folds }) => [...pages, ...folds.flatMap((fold) => fold.pages)]);
  const at = all.findIndex((page) => page.url === url);
  const [before, after] = [all[at - 1], all[at + 1]];
  return html`<nav class="neighbours" aria-label="Previous and next page">
${before && html`<a rel="prev" href="${before.url}"><small>Previous</small> ${before.title}</a>`}
${after && html`<a rel="next" href="${after.url}"><small>Next</small> ${after.title}</a>`}
</nav>`;
}

/** The headings below the title, of two levels. */
function contents({ headings }: Page): Html | undefined {
  const listed = headings.filter(({ level }) => level === 2 || level === 3);
  if (listed.length < 2) return undefined;
  const items = listed.map(
    ({ level, id, text }) => html`<li class="level-${level}"><a href="#${id}">${text}</a></li>
`,
  );
  return html`<nav class="contents" aria-label="On this page"><p class="title">On this page</p><ul>${items}</ul></nav>`;
}
