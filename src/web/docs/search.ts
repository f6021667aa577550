import MiniSearch, { type SearchResult } from 'minisearch';
import { SEARCH_OPTIONS } from './search-options.ts';

/** A section of a page that has the words. */
type Found = { url: string; title: string; page: string; excerpt: string };

let index: Promise<MiniSearch> | undefined;

/** Finds sections, the best first. Rejects if the index cannot be loaded. */
export async function search(query: string): Promise<Found[]> {
  index ??= load();
  const found = (await index).search(query);
  return found.map(({ id, title, page, excerpt }: SearchResult) => ({
    url: String(id),
    title,
    page,
    excerpt,
  }));
}

async function load(): Promise<MiniSearch> {
  const response = await fetch('/docs/search.json');
  if (!response.ok) throw new Error(`the search index answers ${response.status}`);
  return MiniSearch.loadJSON(await response.text(), SEARCH_OPTIONS);
}
