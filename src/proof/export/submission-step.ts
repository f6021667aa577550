/** The submission of a line: as the API returns it, in agreement with its bundle's statement and log entry. */
import type { JsonObject } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  MetadataState,
  StatementForm,
  type Submission,
  SubmissionSchema,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { environmentNumber } from '../../protocol/environment.js';
import { findInexactIntegers, INEXACT_INTEGER } from '../../protocol/inexact-integers.js';
import { canonicalJson } from '../bytes/jcs.js';
import { isPublic, type Statement } from '../statement/statement.js';
import type { ParsedBundle } from '../verify/read/parsed-bundle.js';
import { readMessage } from '../verify/read/read-json.js';
import { type Check, failed } from '../verify/report.js';

/** Metadata has at most 64 KiB and 32 levels; a value takes at least two characters. */
const METADATA_LIMITS = { maxDepth: 32, maxValues: 64 * 1024 };
const MAX_ITEMS = 128;

/**
 * Reads a submission from JSON of REST or ProtoJSON. Returns it, and JSON pointers to members that this version does not
 * know; or the checks that failed.
 */
export function readSubmission(
  json: unknown,
): { submission: Submission; ignored: string[] } | { checks: Check[] } {
  const { message, problems, ignored } = readMessage(SubmissionSchema, json, {
    maxItems: MAX_ITEMS,
    structs: METADATA_LIMITS,
  });
  if (message !== undefined) {
    return { submission: message, ignored: ignored.map((path) => `/submission${path}`) };
  }
  return {
    checks: problems.map(({ path, message: problem }) =>
      failed('submission.invalid', `/submission${path} ${problem}`, `/submission${path}`),
    ),
  };
}

/** Checks of the submission alone; `line` is the text it comes from. */
export function checkSubmission(submission: Submission, line: string): Check[] {
  const [inexact] = findInexactIntegers(line);
  return [
    ...(submission.bundle === undefined ? [] : [wrong('bundle', 'belongs beside the submission')]),
    ...(submission.status === 0 ? [wrong('status', 'is missing')] : []),
    ...(submission.metadataState === 0 ? [wrong('metadata_state', 'is missing')] : []),
    ...(inexact === undefined
      ? []
      : [failed('line.inexact_integer', `${inexact} ${INEXACT_INTEGER}`, inexact)]),
    ...(isRedacted(submission) ? checkRedacted(submission) : checkOpened(submission)),
  ];
}

/** Checks that the members which are also in the signed statement, the leaf or the bundle are the same. */
export function checkAgreement(
  submission: Submission,
  { entry, batch, submission: bundled }: ParsedBundle,
  statement: Statement,
): Check[] {
  const { submittedAt } = submission;
  const isSameTime =
    submittedAt !== undefined &&
    submittedAt.nanos % 1_000_000 === 0 &&
    timestampDate(submittedAt).toISOString() === statement.submittedAt;
  const members: [member: string, isSame: boolean][] = [
    ['id', submission.id === statement.submissionId],
    ['leaf_sha256', submission.leafSha256 === bundled.leafSha256],
    ['submitted_at', isSameTime],
    ['artifact/sha256', submission.artifact?.sha256 === statement.artifactSha256],
    ['environment', submission.environment === environmentNumber(statement.environment)],
    ['log_index', submission.logIndex === BigInt(entry.logIndex)],
    ['batch_id', submission.batchId === batch.id],
    ['statement', isPublicSubmission(submission) === isPublic(statement)],
    ...(isRedacted(submission) ? [] : comparePublic(submission, statement)),
  ];
  return members.filter(([, isSame]) => !isSame).map(([member]) => wrong(member, "is not the bundle's"));
}

/** What is shown of names, subjects and identity until the submission is redacted. */
function comparePublic(
  { artifact, subjectCount, identity }: Submission,
  statement: Statement,
): [member: string, isSame: boolean][] {
  const count = isPublic(statement) ? statement.otherSubjects.length : 0;
  const shown = identity && {
    issuer: identity.issuer,
    subject: identity.subject,
    claims: identity.claims,
  };
  return [
    ['artifact/name', artifact?.name === statement.artifactName],
    ['subject_count', (subjectCount ?? 0) === count],
    ['identity', canonicalJson(shown ?? null) === canonicalJson(statement.identity ?? null)],
  ];
}

function isPublicSubmission({ statement }: Submission): boolean {
  return statement === StatementForm.PUBLIC;
}

/** The metadata that the statement commits to, before any correction; undefined once redacted. */
export function attestedMetadata(submission: Submission): JsonObject | undefined {
  if (isRedacted(submission)) return undefined;
  return submission.attestedMetadata ?? submission.metadata;
}

function isRedacted({ metadataState, redactedAt }: Submission): boolean {
  return metadataState === MetadataState.REDACTED || redactedAt !== undefined;
}

function checkRedacted(submission: Submission): Check[] {
  const { metadata = {}, metadataState, redactedAt } = submission;
  const isState = metadataState === MetadataState.REDACTED && redactedAt !== undefined;
  const isErased = Object.keys(metadata).length === 1 && typeof metadata.schema === 'string';
  return [
    ...(isState ? [] : [wrong('metadata_state', 'and redacted_at contradict each other')]),
    ...(isErased ? [] : [wrong('metadata', 'is redacted, but has more than its schema')]),
    ...(submission.metadataSalt === undefined
      ? []
      : [wrong('metadata_salt', 'is present, but was redacted')]),
    ...(submission.attestedMetadata === undefined
      ? []
      : [wrong('attested_metadata', 'is present, but was redacted')]),
    ...(submission.metadataErrors.length === 0
      ? []
      : [wrong('metadata_errors', 'are present, but were redacted')]),
  ];
}

function checkOpened(submission: Submission): Check[] {
  const { metadata, metadataSalt } = submission;
  const isSalt = isPublicSubmission(submission)
    ? metadataSalt === undefined
    : /^[0-9a-f]{64}$/.test(metadataSalt ?? '');
  return [
    ...(metadata === undefined ? [wrong('metadata', 'is missing')] : []),
    ...(isSalt
      ? []
      : [wrong('metadata_salt', 'is not 64 lower-case hex digits, or there for a public statement')]),
  ];
}

function wrong(member: string, problem: string): Check {
  const path = `/submission/${member}`;
  return failed('submission.wrong', `${path} ${problem}`, path);
}
