import { useEffect, useMemo } from 'preact/hooks';

/** What is needed of an infinite query. */
type Pages<T> = {
  data: { pages: readonly { data: T[] }[] } | undefined;
  hasNextPage: boolean;
  isFetching: boolean;
  fetchNextPage: () => unknown;
};

/** The rows of a list of which all are needed: its pages are read one after the other. */
export function useEveryRow<T>({ data, hasNextPage, isFetching, fetchNextPage }: Pages<T>): T[] {
  useEffect(() => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage]);
  return useMemo(() => data?.pages.flatMap((page) => page.data) ?? [], [data]);
}
