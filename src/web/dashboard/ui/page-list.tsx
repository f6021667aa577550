import type { ComponentChildren } from 'preact';
import { Button } from './button.js';
import { ErrorState, Loading } from './states.js';

/** What a list needs of an infinite query. */
type Pages<T> = {
  data: { pages: readonly { data: T[] }[] } | undefined;
  error: unknown;
  isPending: boolean;
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => unknown;
  refetch: () => unknown;
};

type Props<T> = {
  what: string;
  pages: Pages<T>;
  /** What the button says that reads the next page. */
  more?: string;
  empty: ComponentChildren;
  children: (rows: T[]) => ComponentChildren;
};

/** A list read page by page, in all its states. */
export function PageList<T>({ what, pages, more = 'Show more', empty, children }: Props<T>) {
  if (pages.isPending) return <Loading what={what} />;
  if (pages.data === undefined) return <ErrorState error={pages.error} onRetry={pages.refetch} />;
  const rows = pages.data.pages.flatMap(({ data }) => data);
  if (rows.length === 0) return empty;
  return (
    <>
      {children(rows)}
      {pages.hasNextPage ? (
        <p class="more">
          <Button onClick={() => void pages.fetchNextPage()} disabled={pages.isFetchingNextPage}>
            {pages.isFetchingNextPage ? 'Loading…' : more}
          </Button>
        </p>
      ) : null}
    </>
  );
}
