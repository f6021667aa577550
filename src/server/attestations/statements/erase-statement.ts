import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import {
  type EraseStatementResponse,
  EraseStatementResponseSchema,
  type SubmissionService,
} from '../../../../gen/attestation/admin/v1/submissions_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { type AuditIds, recordAction } from '../../admin/audit-log.js';
import type { Handlers } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Sql } from '../../database/connect.js';
import { changeOnce, type Idempotency } from '../../idempotency/idempotency.js';
import { reviseJob } from '../../jobs/job.js';
import { type SendJob, sendAfter } from '../../jobs/send-after.js';
import { eraseStatement } from '../submissions/metadata.js';
import { findErasable, lockStatement } from './statement-store.js';

type EraseDeps = AuditIds & { idempotency: Idempotency; send: SendJob };

/** The handlers of SubmissionService. */
export function submissionHandlers(deps: EraseDeps): Handlers<typeof SubmissionService> {
  return {
    /**
     * Erases the text of a submission's statement, and its metadata. Has no effect the second time. Commit point: the
     * transaction that also holds the audit entry and the change that exports ship.
     */
    eraseStatement: (request, call) => {
      const { id } = request;
      const erased = changeOnce(deps.idempotency, call, request, {
        make: async (tx) => {
          await lockStatement(tx, id);
          const { projectId, erasedAt } = await getErasable(tx, id);
          if (erasedAt !== null) return id;
          await eraseStatement(tx, id);
          const action = AuditAction.ATTESTATION_STATEMENT_ERASED;
          await recordAction(deps, tx, call, { action, projectId, resourceId: id });
          return id;
        },
        show: async (sql) => eraseResponse(id, await getErasable(sql, id)),
      });
      return sendAfter(deps.send, reviseJob(), erased);
    },
  };
}

async function getErasable(sql: Sql, id: string) {
  const found = await findErasable(sql, id);
  if (found === undefined)
    throw new ApiError(ErrorCode.SUBMISSION_NOT_FOUND, 'there is no submission with this id');
  if (!found.isStored) {
    const message =
      'the statement of this submission is private and names neither artifact nor identity: DELETE erases the metadata';
    throw new ApiError(ErrorCode.STATEMENT_NOT_STORED, message);
  }
  return found;
}

function eraseResponse(
  id: string,
  { projectId, erasedAt }: { projectId: string; erasedAt: Date | null },
): EraseStatementResponse {
  if (erasedAt === null) throw new Error(`the statement of ${id} is not erased`);
  return create(EraseStatementResponseSchema, {
    id,
    projectId,
    statementErasedAt: timestampFromDate(erasedAt),
  });
}
