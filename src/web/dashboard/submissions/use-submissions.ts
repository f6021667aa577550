import { useInfiniteQuery, useQuery } from '@connectrpc/connect-query';
import { useEffect, useMemo } from 'preact/hooks';
import {
  AttestationService,
  type Submission,
  type SubmissionStatus,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Wanted } from './find-submission.js';

/** Submissions as they are listed. */
export type SubmissionList = {
  rows: Submission[];
  isPending: boolean;
  error: unknown;
  hasNextPage: boolean;
  fetchNextPage: () => unknown;
  refetch: () => unknown;
};

const PAGE = 200;
const NEWEST = 100;
const POLL_MS = 3_000;
const { listAttestations } = AttestationService.method;

/**
 * Reads submissions page by page, and the newest ones again and again while the page shows. When more have come at once
 * than are read so, it starts anew.
 */
export function useSubmissions({
  sha256,
  build,
  status,
}: Wanted & { status: SubmissionStatus }): SubmissionList {
  const filter = {
    status,
    ...(sha256 !== undefined && { artifactSha256: sha256 }),
    ...(build !== undefined && { build }),
  };
  const pages = useInfiniteQuery(
    listAttestations,
    { ...filter, limit: PAGE, cursor: '' },
    {
      pageParamKey: 'cursor',
      getNextPageParam: ({ nextCursor }) => nextCursor || undefined,
      staleTime: Infinity,
    },
  );
  const newest = useQuery(listAttestations, { ...filter, limit: NEWEST }, { refetchInterval: POLL_MS });
  const known = useMemo(() => pages.data?.pages.flatMap(({ data }) => data) ?? [], [pages.data]);
  const latest = newest.data?.data;
  const rows = useMemo(() => merge(latest ?? [], known), [latest, known]);
  const { isFetching, refetch } = pages;
  const isTorn = !isFetching && hasGap(latest ?? [], known);
  useEffect(() => {
    if (isTorn) void refetch();
  }, [isTorn, refetch]);
  const wanted = sha256 === undefined ? rows : rows.filter(({ artifact }) => artifact?.sha256 === sha256);
  const { isPending, error, hasNextPage, fetchNextPage } = pages;
  return { rows: wanted, isPending, error, hasNextPage: hasNextPage && !isFetching, fetchNextPage, refetch };
}

function merge(newest: readonly Submission[], known: readonly Submission[]): Submission[] {
  const ids = new Set(newest.map(({ id }) => id));
  return [...newest, ...known.filter(({ id }) => !ids.has(id))];
}

/** Whether there can be submissions between the newest ones and those that were read before. */
function hasGap(newest: readonly Submission[], known: readonly Submission[]): boolean {
  const [first] = known;
  return newest.length === NEWEST && first !== undefined && !newest.some(({ id }) => id === first.id);
}
