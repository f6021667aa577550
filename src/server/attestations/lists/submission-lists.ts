import type { Sql } from '../../database/connect.js';
import {
  type ListedColumns,
  type ListedSubmission,
  readColumns,
  type SubmissionPosition,
} from './list-row-decoder.js';
import { pageStatement, type SubmissionQuery } from './list-statement.js';
import { createKnownBatches } from './listed-batches.js';

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
  const read = async (isSummed: boolean) => {
    const { text, parameters } = pageStatement(query, known, isSummed);
    const [page] = await sql.unsafe<[FoundPage]>(text, parameters as never[], { prepare: true });
    const { fitting, stoppedAt } = page;
    const rows = await readColumns(sql, page, { logId: query.logIds[0] ?? 0, known });
    return { rows, fitting, stoppedAt: stoppedAt ?? undefined };
  };
  const little = await read(false);
  const { rows, fitting, stoppedAt } = little.fitting < little.rows.length ? await read(true) : little;
  const isCut = fitting < rows.length;
  return { rows: isCut ? rows.slice(0, fitting) : rows, isCut, stoppedAt };
}
