/** Submissions as text. Metadata is what the submitter sent: it is made printable. */
import {
  MetadataStateSchema,
  type Submission,
  SubmissionSchema,
  SubmissionStatusSchema,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { EnvironmentSchema } from '../../../gen/attestation/v1/environment_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { printable } from '../../protocol/printable.js';
import { compileWriter } from '../../server/json/codec.js';
import type { Columns } from './format.js';
import { formatTable } from './table.js';
import { timeText } from './time-text.js';

/** A submission as the JSON of the REST API. */
export const submissionJson = compileWriter(SubmissionSchema);

/** Name of a submission's status. */
export function statusName({ status }: Submission): string {
  return enumName(SubmissionStatusSchema, status);
}

/** Columns of a list of submissions. */
export const SUBMISSION_COLUMNS: Columns<Submission> = {
  head: ['ID', 'SUBMITTED', 'STATUS', 'SCHEMA', 'ARTIFACT'],
  cells: (submission) => [
    submission.id,
    timeText(submission.submittedAt),
    statusName(submission),
    printable(String(submission.metadata?.schema ?? '-')),
    submission.artifact?.sha256 ?? '-',
  ],
  json: (submission) => submissionJson(submission),
};

/** All fields of one submission but its bundle. */
export function submissionText(submission: Submission): string {
  const { build, metadata, metadataErrors, attestedMetadata, redactedAt } = submission;
  return formatTable([
    ['id', submission.id],
    ['status', statusName(submission)],
    ['artifact', `sha256:${submission.artifact?.sha256}`],
    ['submitted', timeText(submission.submittedAt)],
    ['witnessed', timeText(submission.witnessedAt)],
    ['environment', enumName(EnvironmentSchema, submission.environment)],
    ['log index', String(submission.logIndex)],
    ['leaf', submission.leafSha256],
    ['batch', submission.batchId ?? '-'],
    ...(build === undefined ? [] : [['build', printable(build)]]),
    ['bundle', submission.bundle === undefined ? 'not ready' : `attest bundle ${submission.id}`],
    ['metadata', `${enumName(MetadataStateSchema, submission.metadataState)}  ${jsonText(metadata)}`],
    ...metadataErrors.map(({ path, message }) => ['', printable(`${path || '/'} ${message}`)]),
    ...(attestedMetadata === undefined ? [] : [['attested', jsonText(attestedMetadata)]]),
    ...(redactedAt === undefined ? [] : [['redacted', timeText(redactedAt)]]),
  ]);
}

function jsonText(value: unknown): string {
  return printable(JSON.stringify(value ?? null));
}
