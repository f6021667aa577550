/** The greatest --limit. */
export const MAX_LIMIT = 100_000;

/** The greatest page of a list. */
export const MAX_PAGE = 200;

/** The first `limit` items; all if there is no limit. Fetches no page beyond them. */
export async function* takeFirst<T>(items: AsyncIterable<T>, limit: number | undefined): AsyncGenerator<T> {
  let count = 0;
  for await (const item of items) {
    yield item;
    if (++count === limit) return;
  }
}
