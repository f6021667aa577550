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

/** A submission as the API shows it, from its row; without bundle and warnings. */
export function submissionMessage(row: SubmissionRow, environment: Environment): Submission {
  const { redactedAt } = row;
  return create(SubmissionSchema, {
    id: row.id,
    leafSha256: toHex(row.leafHash),
    status: submissionStatus(row),
    submittedAt: timestampFromDate(row.submittedAt),
    ...(row.witnessedAt === null ? {} : { witnessedAt: timestampFromDate(row.witnessedAt) }),
    metadata: row.metadata === null ? { schema: row.schema } : parseStored(row.metadata),
    artifact: { sha256: toHex(row.artifactSha256) },
    environment,
    logIndex: BigInt(row.logIndex),
    ...(row.batchId === null ? {} : { batchId: row.batchId }),
    metadataState: redactedAt === null ? row.metadataState : MetadataState.REDACTED,
    metadataErrors: metadataErrors(row),
    ...(row.salt === null ? {} : { metadataSalt: toHex(row.salt) }),
    ...(row.attestedMetadata === null ? {} : { attestedMetadata: parseStored(row.attestedMetadata) }),
    ...(redactedAt === null ? {} : { redactedAt: timestampFromDate(redactedAt) }),
  });
}

/** The status follows from the batch's: the enums share their numbers, and a sealed batch leaves its leaves queued. */
export function submissionStatus(row: Pick<SubmissionRow, 'batchStatus'>): SubmissionStatus {
  return row.batchStatus ?? SubmissionStatus.QUEUED;
}

/** Where the metadata fails its schema, while it stands uncorrected. */
export function metadataErrors(row: SubmissionRow): MessageInitShape<typeof MetadataErrorSchema>[] {
  if (row.metadataErrors === null || row.metadataState !== MetadataState.INVALID) return [];
  return JSON.parse(row.metadataErrors) as MessageInitShape<typeof MetadataErrorSchema>[];
}

function parseStored(jcs: string): JsonObject {
  return JSON.parse(jcs) as JsonObject;
}
