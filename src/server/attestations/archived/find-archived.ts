import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../core/errors.js';
import type { Principal } from '../../core/principal.js';
import type { Sql } from '../../database/connect.js';
import type { LogCache } from '../../log/log-cache.js';
import { findArchivedObject } from './archived-objects.js';

/** Throws `submission.archived` if a submission of the caller was removed from the tables, and names the object that has it. */
export type AssertNotArchived = (
  id: string,
  caller: Pick<Principal, 'projectId' | 'environment'>,
) => Promise<void>;

/** Creates the check, for ids that the tables do not have: an index look-up for each log of the environment. */
export function createArchivedCheck(sql: Sql, logCache: Pick<LogCache, 'logIds'>): AssertNotArchived {
  return async (id, { projectId, environment }) => {
    const found = await findArchivedObject(sql, { id, projectId }, await logCache.logIds(environment));
    if (found === undefined) return;
    const { place, sha256 } = found;
    throw new ApiError(
      ErrorCode.SUBMISSION_ARCHIVED,
      `this submission is archived: ask the operator for the object ${place}`,
      { object: place, sha256: Buffer.from(sha256).toString('hex') },
    );
  };
}
