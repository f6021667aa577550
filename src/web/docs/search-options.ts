import type { Options } from 'minisearch';

/** How the index of the search is made and read: a page's section is a document. */
export const SEARCH_OPTIONS: Options = {
  fields: ['title', 'page', 'text'],
  storeFields: ['page', 'title', 'excerpt'],
  searchOptions: { boost: { title: 4, page: 2 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' },
};
