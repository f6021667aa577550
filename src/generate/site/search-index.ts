import MiniSearch from 'minisearch';
import { SEARCH_OPTIONS } from '../../web/docs/search-options.js';
import type { Page } from './layout.js';

/** Characters of a section that a result shows. */
const EXCERPT = 140;

/** The index of the sections of all pages, as JSON that the page's script loads. */
export function searchIndex(pages: readonly Page[]): string {
  const index = new MiniSearch(SEARCH_OPTIONS);
  const documents = pages.flatMap(({ url, title, sections }) =>
    sections.map((section, at) => ({
      id: section.id === '' || at === 0 ? url : `${url}#${section.id}`,
      page: title,
      title: section.title,
      text: section.text,
      excerpt: section.text.replace(/\s+/g, ' ').slice(0, EXCERPT),
    })),
  );
  // A heading that a page has twice is found once.
  index.addAll([...new Map(documents.map((document) => [document.id, document])).values()]);
  return JSON.stringify(index);
}
