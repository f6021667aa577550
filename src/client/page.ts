/** Lists, read page by page. */

/** A page as every list method answers with it. */
export type Page<T> = { data: T[]; nextCursor: string };

/** What a list method returns: awaited, its first page; iterated, every item of all pages, read as they are come to. */
export type Listing<P, T> = Promise<P> & AsyncIterable<T>;

/** A listing over pages. `readPage` is called at once for the first, with an undefined cursor. */
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
