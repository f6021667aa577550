import type { Sql } from '../../database/connect.js';
import {
  type ListedColumns,
  type ListedSubmission,
  readColumns,
  type SubmissionPosition,
} from './list-row-decoder.js';
import { pageStatement, type SubmissionQuery } from './list-statement.js';
import { createKnownBatches, type KnownBatches } from './listed-batches.js';

/**
 * A page of submissions. `isCut` if their metadata filled the page before its row limit. `stoppedAt` is the submission
 * at which the search for an artifact stopped, if it looked at as many as a page may.
 */
type SubmissionPage = {
  rows: ListedSubmission[];
  isCut: boolean;
  stoppedAt: SubmissionPosition | undefined;
};

type FoundPage = ListedColumns & { stoppedAt?: SubmissionPosition | null };

/** A page is looked for in so many leaves first, which are in one or two partitions. */
const NEWEST_LEAVES = 2 ** 22;

/** The first of the leaves that a page is looked for in; 0: in all, because of several logs or because it is not known. */
function firstOfNewest({ logIds, before, artifactSha256 }: SubmissionQuery, known: KnownBatches): number {
  const [logId] = logIds;
  if (logId === undefined || logIds.length > 1 || artifactSha256 !== undefined) return 0;
  const end = before?.logIndex ?? known.newest(logId)?.treeSize ?? 0;
  return Math.max(0, end - NEWEST_LEAVES);
}

/**
 * Lists a project's submissions, newest first, with at most 512 KiB of metadata unless the first alone has more. Mostly
 * each row has little; otherwise the page is read again, and cut where its metadata does not fit.
 *
 * @param known saves looking up batches, and learns those of the page
 */
export async function listSubmissions(
  sql: Sql,
  query: SubmissionQuery,
  known = createKnownBatches(),
): Promise<SubmissionPage> {
  const read = async (isSummed: boolean, from: number) => {
    const { text, parameters } = pageStatement(query, known, isSummed, from);
    const [page] = await sql.unsafe<[FoundPage]>(text, parameters as never[], { prepare: true });
    const { fitting, stoppedAt } = page;
    const rows = await readColumns(sql, page, { logId: query.logIds[0] ?? 0, known });
    return { rows, fitting, stoppedAt: stoppedAt ?? undefined };
  };
  let from = firstOfNewest(query, known);
  let page = await read(false, from);
  if (from > 0 && page.rows.length < query.limit) {
    from = 0;
    page = await read(false, from);
  }
  const { rows, fitting, stoppedAt } = page.fitting < page.rows.length ? await read(true, from) : page;
  const isCut = fitting < rows.length;
  return { rows: isCut ? rows.slice(0, fitting) : rows, isCut, stoppedAt };
}
