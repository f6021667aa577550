/** The steps from a request to the row of its submission, the same for one and for many. */
import {
  type CreateAttestationRequest,
  MetadataState,
  ValidationMode,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { toHex, utf8 } from '../../../proof/bytes/encoding.js';
import type { StatedSubmission } from '../../../proof/statement/stated-submission.js';
import { metadataCommitment, SALT_BYTES } from '../../../proof/statement/statement.js';
import { type EnvironmentName, environmentName } from '../../../protocol/environment.js';
import type { Identity } from '../../../protocol/identity.js';
import type { Principal } from '../../core/principal.js';
import type { RandomSource } from '../../core/random.js';
import { formatMs } from '../../json/well-known-types.js';
import type { Departure } from '../../schema/problems.js';
import type { SchemaRegistry } from '../../schema/registry.js';
import { invalidMetadata, type ValidMetadata, validateBySchema } from '../metadata.js';
import type { NewSubmission, SequencedRow } from '../sequence/sequence-submissions.js';
import { checkStatement, type PublicParts, type StatementRequest } from '../statements/check-statement.js';
import {
  assertFits,
  type MadeStatement,
  makePrivateStatement,
  makePublicStatement,
} from '../statements/make-statement.js';
import { StatementVersion } from '../statements/stored-statement.js';
import { parseStored, type SubmissionView } from '../submissions/submission-message.js';

/** What a submission stores of its signed statement, in lower-case hex: the signature (DER) and the hash of its leaf. */
export type SignedStatement = { readonly signature: string; readonly leafHash: string };

/** Signs an environment's statements: the row id of its key, and the signing of statements' texts, which does not block. */
export type DsseSigner = {
  keyId: number;
  sign: (statement: string) => Promise<SignedStatement>;
  /** Signs many at once, with one hand-over. */
  signMany: (statements: readonly string[]) => Promise<SignedStatement[]>;
};

/** A request that passes its checks. */
export type CheckedSubmission = {
  /** In lower case. */
  artifactSha256: string;
  artifactName: string | undefined;
  schema: string;
  /** The metadata's JCS. */
  metadata: string;
  /** JSON; null if the metadata is valid. */
  metadataErrors: string | null;
  /** The build that the request names; null if it names none. */
  build: string | null;
  /** Of a public statement; undefined if it is to be private. */
  publicParts: PublicParts | undefined;
  departures: readonly Departure[];
};

/** The metadata of a request, as JCS, and how it departs from its schema in ways that are accepted. */
export type SentMetadata = Pick<CheckedSubmission, 'metadata' | 'departures'>;

/**
 * Validates the metadata of a request by its schema, and what it says of its statement. Throws the error of a request that
 * is not recorded.
 */
export function checkSubmission(
  { schemas }: { schemas: SchemaRegistry },
  request: StatementRequest & Pick<CreateAttestationRequest, 'build'>,
  metadata: ValidMetadata,
  submitter: Submitter,
): CheckedSubmission {
  const { schema, value, canonical } = metadata;
  const { problems, departures } = validateBySchema(schemas, value);
  const publicParts = checkStatement(schemas, request, metadata);
  if (problems !== undefined && request.validation !== ValidationMode.LENIENT)
    throw invalidMetadata(schema, problems, publicParts === undefined ? LENIENT_HINT : PUBLIC_HINT);
  const checked = {
    artifactSha256: request.artifact?.sha256.toLowerCase() ?? '',
    artifactName: request.artifact?.name,
    schema,
    metadata: canonical,
    metadataErrors: problems === undefined ? null : JSON.stringify(problems.errors),
    build: request.build ?? null,
    publicParts,
    departures,
  };
  if (publicParts !== undefined)
    assertFits(statedOf(checked, submitter, SAMPLE_ID, 0), publicParts, canonical.length);
  return checked;
}

const LENIENT_HINT = 'with "validation": "lenient" it would be recorded all the same';
const PUBLIC_HINT = 'a public statement has valid metadata only';
/** As long as any. */
const SAMPLE_ID = `sub_${'0'.repeat(26)}`;

/** A submission with its statement; salt and commitment in hex, null without a commitment. */
type NewlyStated = Omit<CheckedSubmission, 'departures' | 'publicParts' | 'artifactName'> & {
  id: string;
  submittedAtMs: number;
  salt: string | null;
  commitment: string | null;
  statement: MadeStatement;
};

/** Who submits, as statements and rows name it. */
export type Submitter = Pick<NewSubmission, 'projectId' | 'apiKeyId' | 'limits' | 'ceiling'> & {
  environment: EnvironmentName;
  identity: Identity | undefined;
};

const submitters = new WeakMap<Principal, Submitter>();

/** The submitter that a principal is: one object for each, so that the limits of many rows are compared at once. */
export function submitterOf(principal: Principal): Submitter {
  const known = submitters.get(principal);
  if (known !== undefined) return known;
  const { id: apiKeyId, projectId, submissionWindows, ceiling } = principal;
  const submitter = {
    projectId,
    apiKeyId,
    limits: limitsOf(submissionWindows),
    ceiling: ceiling && limitsOf(ceiling.submissionWindows),
    environment: environmentName(principal.environment),
    identity: principal.identity,
  };
  submitters.set(principal, submitter);
  return submitter;
}

function limitsOf([second, hour, day]: Principal['submissionWindows']): NewSubmission['limits'] {
  return { perSecond: second?.limit ?? 0, perHour: hour?.limit ?? 0, perDay: day?.limit ?? 0 };
}

/** Gives a submission id, time and, if its statement is private, salt, and makes the statement. */
export function stateSubmission(
  deps: { random: RandomSource; submissionClock: () => number },
  checked: CheckedSubmission,
  submitter: Submitter,
): NewlyStated {
  const { publicParts } = checked;
  const salt = publicParts === undefined ? deps.random.bytes(SALT_BYTES) : undefined;
  const commitment = salt && metadataCommitment(salt, utf8(checked.metadata));
  const submittedAtMs = deps.submissionClock();
  const id = `sub_${deps.random.ulid(submittedAtMs)}`;
  const stated = statedOf(checked, submitter, id, submittedAtMs);
  const statement =
    publicParts === undefined
      ? makePrivateStatement(stated, { schema: checked.schema, commitment: commitment ?? '' })
      : makePublicStatement(stated, publicParts);
  // Member by member: the copy of an object takes five times as long.
  return {
    artifactSha256: checked.artifactSha256,
    schema: checked.schema,
    metadata: checked.metadata,
    metadataErrors: checked.metadataErrors,
    build: checked.build,
    id,
    submittedAtMs,
    salt: salt === undefined ? null : toHex(salt),
    commitment: commitment ?? null,
    statement,
  };
}

function statedOf(
  { artifactSha256, artifactName }: Pick<CheckedSubmission, 'artifactSha256' | 'artifactName'>,
  { projectId: project, environment, identity }: Submitter,
  submissionId: string,
  submittedAtMs: number,
): StatedSubmission {
  const submittedAt = formatMs(submittedAtMs);
  return { artifactSha256, artifactName, submissionId, project, submittedAt, environment, identity };
}

/** The row of a signed submission. */
export function newSubmission(
  stated: NewlyStated,
  { signature, leafHash }: SignedStatement,
  keyId: number,
  { projectId, apiKeyId, limits, ceiling }: Submitter,
  idempotency: NewSubmission['idempotency'],
): NewSubmission {
  return {
    id: stated.id,
    projectId,
    apiKeyId,
    submittedAtMs: stated.submittedAtMs,
    artifactSha256: stated.artifactSha256,
    schema: stated.schema,
    metadata: stated.metadata,
    metadataErrors: stated.metadataErrors,
    build: stated.build,
    statement: stated.statement.stored,
    salt: stated.salt,
    commitment: stated.commitment,
    dsseKeyId: keyId,
    signature,
    leafHash,
    idempotency,
    limits,
    ceiling,
  };
}

/** How the metadata of a submission departs from its schema, given the request that it follows from. */
export function departuresOf(
  { metadata }: Pick<SubmissionView, 'metadata'>,
  request: SentMetadata,
): readonly Departure[] {
  // A correction or a redaction has replaced what was sent.
  return metadata === request.metadata ? request.departures : [];
}

/** A stored row as the API returns it. */
export function storedView(row: NewSubmission, { logIndex }: SequencedRow): SubmissionView {
  return {
    id: row.id,
    logIndex: logIndex ?? 0,
    submittedAtMs: row.submittedAtMs,
    artifactSha256: row.artifactSha256,
    schema: row.schema,
    metadata: row.metadata,
    metadataState: row.metadataErrors === null ? MetadataState.VALID : MetadataState.INVALID,
    metadataErrors: parseStored(row.metadataErrors),
    build: row.build,
    statement: row.statement && {
      ...row.statement.shown,
      isPublic: row.statement.version === StatementVersion.PUBLIC,
      erasedAtMs: null,
    },
    attestedMetadata: null,
    salt: row.salt,
    leafSha256: row.leafHash,
    redactedAtMs: null,
    batchId: null,
    batchStatus: null,
    witnessedAtMs: null,
  };
}
