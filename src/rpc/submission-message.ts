import { create, type JsonObject, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type MetadataErrorSchema,
  MetadataState,
  type Submission,
  SubmissionSchema,
  SubmissionStatus,
} from '../../gen/attestation/v1/attestations_pb.js';
import type { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { toHex } from '../proof/encoding.js';
import type { SubmissionRow } from '../store/submissions.js';

/** What of a row the API shows, or needs to know to show it. */
export type ShownSubmission = Omit<
  SubmissionRow,
  'logId' | 'projectId' | 'commitment' | 'dsseKeyId' | 'signature' | 'attestedSchema' | 'batchTreeSize'
>;

/** A submission as the API shows it, from its row; without bundle and warnings. */
export function submissionMessage(row: ShownSubmission, environment: Environment): Submission {
  const message = create(SubmissionSchema, {
    id: row.id,
    leafSha256: toHex(row.leafHash),
    status: submissionStatus(row),
    submittedAt: timestampFromDate(row.submittedAt),
    metadata: row.metadata === null ? { schema: row.schema } : parseStored(row.metadata),
    artifact: { sha256: toHex(row.artifactSha256) },
    environment,
    logIndex: BigInt(row.logIndex),
    metadataState: row.metadataState,
    metadataErrors: metadataErrors(row),
  });
  if (row.witnessedAt !== null) message.witnessedAt = timestampFromDate(row.witnessedAt);
  if (row.batchId !== null) message.batchId = row.batchId;
  if (row.salt !== null) message.metadataSalt = toHex(row.salt);
  if (row.attestedMetadata !== null) message.attestedMetadata = parseStored(row.attestedMetadata);
  if (row.redactedAt !== null) {
    message.redactedAt = timestampFromDate(row.redactedAt);
    message.metadataState = MetadataState.REDACTED;
  }
  return message;
}

/** The status follows from the batch's: the enums share their numbers, and a sealed batch leaves its leaves queued. */
export function submissionStatus(row: Pick<SubmissionRow, 'batchStatus'>): SubmissionStatus {
  return row.batchStatus ?? SubmissionStatus.QUEUED;
}

/** Where the metadata fails its schema, while it stands uncorrected. */
export function metadataErrors(
  row: Pick<SubmissionRow, 'metadataErrors' | 'metadataState'>,
): MessageInitShape<typeof MetadataErrorSchema>[] {
  if (row.metadataErrors === null || row.metadataState !== MetadataState.INVALID) return [];
  return JSON.parse(row.metadataErrors) as MessageInitShape<typeof MetadataErrorSchema>[];
}

function parseStored(jcs: string): JsonObject {
  return JSON.parse(jcs) as JsonObject;
}
