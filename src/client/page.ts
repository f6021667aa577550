/** Lists, read page by page. */

/** A page, as every list method returns it. */
export type Page<T> = { data: T[]; nextCursor: string };

/** The result of a list method: awaited, the first page; iterated, the items of all pages, fetched lazily. */
export type Listing<P, T> = Promise<P> & AsyncIterable<T>;

/** Creates a listing. Calls `readPage` at once for the first page, with an undefined cursor. */
export function listing<T, P extends Page<T>>(
  readPage: (cursor: string | undefined) => Promise<P>,
): Listing<P, T> {
  const first = readPage(undefined);
  return Object.assign(first, { [Symbol.asyncIterator]: () => items(first, readPage) });
}

async function* items<T>(
  first: Promise<Page<T>>,
  readPage: (cursor: string) => Promise<Page<T>>,
): AsyncGenerator<T> {
  for (let page = await first; ; page = await readPage(page.nextCursor)) {
    yield* page.data;
    if (page.nextCursor === '') return;
  }
}
