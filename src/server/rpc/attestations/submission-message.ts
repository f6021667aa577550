import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  MetadataState,
  type Submission,
  SubmissionSchema,
  SubmissionStatus,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { toHex } from '../../../proof/bytes/encoding.js';
import { canonicalObject } from '../../json/canonical-object.js';
import type { ListedSubmission } from '../../store/submissions/submission-lists.js';
import type { SubmissionRow } from '../../store/submissions/submissions.js';

/** What of a submission the API shows, or needs to know to show it. */
export type ShownSubmission = Omit<ListedSubmission, 'logId'>;

/** A submission as the API shows it, from its row; without bundle and warnings. */
export function submissionMessage(row: SubmissionRow, environment: Environment): Submission {
  return shownMessage(
    {
      ...row,
      submittedAtMs: row.submittedAt.getTime(),
      artifactSha256: toHex(row.artifactSha256),
      metadataErrors: parseStored(row.metadataErrors),
      salt: row.salt && toHex(row.salt),
      leafSha256: toHex(row.leafHash),
      redactedAtMs: row.redactedAt?.getTime() ?? null,
      witnessedAtMs: row.witnessedAt?.getTime() ?? null,
    },
    environment,
  );
}

/** The same from what a list or a creation knows of it. */
export function shownMessage(shown: ShownSubmission, environment: Environment): Submission {
  const message = create(SubmissionSchema, {
    id: shown.id,
    leafSha256: shown.leafSha256,
    status: submissionStatus(shown),
    submittedAt: timestampFromMs(shown.submittedAtMs),
    metadata: shown.metadata === null ? { schema: shown.schema } : canonicalObject(shown.metadata),
    artifact: { sha256: shown.artifactSha256 },
    environment,
    logIndex: BigInt(shown.logIndex),
    metadataState: shown.metadataState,
    metadataErrors: shown.metadataState === MetadataState.INVALID ? (shown.metadataErrors ?? []) : [],
  });
  if (shown.witnessedAtMs !== null) message.witnessedAt = timestampFromMs(shown.witnessedAtMs);
  if (shown.batchId !== null) message.batchId = shown.batchId;
  if (shown.salt !== null) message.metadataSalt = shown.salt;
  if (shown.attestedMetadata !== null) message.attestedMetadata = canonicalObject(shown.attestedMetadata);
  if (shown.redactedAtMs !== null) {
    message.redactedAt = timestampFromMs(shown.redactedAtMs);
    message.metadataState = MetadataState.REDACTED;
  }
  return message;
}

/** The status follows from the batch's: the enums share their numbers, and a sealed batch leaves its leaves queued. */
export function submissionStatus(row: Pick<SubmissionRow, 'batchStatus'>): SubmissionStatus {
  return row.batchStatus ?? SubmissionStatus.QUEUED;
}

/** JSON text of a row; what it holds was checked before it was stored. */
export function parseStored<T extends object>(json: string | null): T | null;
export function parseStored(json: string | null): object | null {
  return json === null ? null : (JSON.parse(json) as object);
}
