import { create, type Message } from '@bufbuild/protobuf';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import {
  type DeleteAttestationRequest,
  MetadataState,
  type Submission,
  type UpdateAttestationRequest,
  type Warning,
  WarningSchema,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../../protocol/error-rules.js';
import { type AuditedAction, type AuditIds, recordAction } from '../../admin/audit-log.js';
import { type Call, getPrincipal } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Sql } from '../../database/connect.js';
import { changeOnce, type Idempotency } from '../../idempotency/idempotency.js';
import { reviseJob } from '../../jobs/job.js';
import { type SendJob, sendAfter } from '../../jobs/send-after.js';
import type { SchemaRegistry } from '../../schema/registry.js';
import type { AssertNotArchived } from '../archived/find-archived.js';
import { invalidMetadata, readMetadata, validateBySchema } from '../metadata.js';
import { StatementVersion } from '../statements/stored-statement.js';
import { correctMetadata, lockMetadata, type MetadataStatus, redactMetadata } from './metadata.js';
import { type SubmissionView, submissionMessage, submissionView } from './submission-message.js';
import { findSubmissions } from './submissions.js';

/** Dependencies of correction and redaction. */
export type ChangeDeps = AuditIds & {
  idempotency: Idempotency;
  schemas: SchemaRegistry;
  send: SendJob;
  assertNotArchived: AssertNotArchived;
};

/**
 * Replaces the invalid metadata of the caller's submission. Commit point: the transaction that also holds the audit
 * entry and the claim of the idempotency key.
 */
export async function updateAttestation(
  deps: ChangeDeps,
  request: UpdateAttestationRequest,
  call: Call,
): Promise<Submission> {
  const { id } = request;
  const metadata = readMetadata(request.metadata ?? {});
  return change(deps, call, request, async (tx, stand) => {
    assertCorrectable(stand);
    const { problems } = validateBySchema(deps.schemas, metadata.value);
    const { schema } = metadata;
    if (problems !== undefined) throw invalidMetadata(schema, problems, 'nothing was changed');
    await correctMetadata(tx, id, metadata);
    const detail = { schema, attested_schema: stand.schema };
    return { action: AuditAction.ATTESTATION_CORRECTED, resourceId: id, detail };
  });
}

/** Erases the metadata of the caller's submission. Has no effect the second time. Commit point: as of a correction. */
export function deleteAttestation(
  deps: ChangeDeps,
  request: DeleteAttestationRequest,
  call: Call,
): Promise<Submission> {
  const { id } = request;
  return change(deps, call, request, async (tx, { state, schema }) => {
    if (state === MetadataState.REDACTED) return undefined;
    await redactMetadata(tx, id);
    return { action: AuditAction.ATTESTATION_REDACTED, resourceId: id, detail: { schema } };
  });
}

/** The error `submission.not_found`, of unknown submissions and those of other projects. */
export function submissionNotFound(): ApiError {
  return new ApiError(
    ErrorCode.SUBMISSION_NOT_FOUND,
    "the project has no submission with this id in the API key's environment",
  );
}

/**
 * Runs `effect` on the locked submission, records the action that it returns, and reads the submission. Then exports ship
 * its object again.
 */
function change(
  deps: ChangeDeps,
  call: Call,
  request: Message & { id: string },
  effect: (tx: Sql, stand: MetadataStatus) => Promise<AuditedAction | undefined>,
): Promise<Submission> {
  const { environment, projectId } = getPrincipal(call);
  const changed = changeOnce(deps.idempotency, call, request, {
    make: async (tx) => {
      const stand = await lockMetadata(tx, request.id, { projectId, environment });
      if (stand === undefined) {
        await deps.assertNotArchived(request.id, { projectId, environment });
        throw submissionNotFound();
      }
      const done = await effect(tx, stand);
      if (done !== undefined) await recordAction(deps, tx, call, done);
      return request.id;
    },
    show: async (sql, id) => {
      const [row] = await findSubmissions(sql, [id]);
      if (row === undefined) throw new Error(`the submission ${id} is missing`);
      const shown = submissionView(row);
      return submissionMessage(shown, environment, { warnings: publicWarnings(shown) });
    },
  });
  return sendAfter(deps.send, reviseJob(), changed);
}

/** That the bundle of a redacted submission still shows its statement. */
function publicWarnings({ statement, redactedAtMs }: SubmissionView): Warning[] {
  if (statement?.isPublic !== true || statement.erasedAtMs !== null || redactedAtMs === null) return [];
  const { code } = errorRules(ErrorCode.STATEMENT_PUBLIC);
  const message =
    'the proof bundle of this submission still shows its public statement, the metadata included; an operator can erase it (attest submissions erase-statement)';
  return [create(WarningSchema, { code, message, details: {} })];
}

function assertCorrectable({ state, statementVersion }: MetadataStatus): void {
  if (statementVersion === StatementVersion.PUBLIC) {
    const message = 'the statement of this submission is public: its metadata is signed as it is';
    throw new ApiError(ErrorCode.STATEMENT_PUBLIC, message);
  }
  if (state === MetadataState.REDACTED) {
    throw new ApiError(ErrorCode.SUBMISSION_REDACTED, 'the metadata of this submission was erased for good');
  }
  if (state !== MetadataState.INVALID) {
    const message =
      'the metadata of this submission is valid; only metadata that fails its schema can be corrected';
    throw new ApiError(ErrorCode.SUBMISSION_NOT_CORRECTABLE, message);
  }
}
