/** Step 2: the statement is about the expected artifact, environment, project and metadata. */

import { timestampDate } from '@bufbuild/protobuf/wkt';
import { type EnvironmentName, environmentNumber } from '../../../protocol/environment.js';
import { findInexactIntegers, INEXACT_INTEGER } from '../../../protocol/inexact-integers.js';
import { fromHex, fromUtf8, toHex } from '../../bytes/encoding.js';
import { FormatError } from '../../bytes/format-error.js';
import { jcs, jcsBytes } from '../../bytes/jcs.js';
import { sha256 } from '../../bytes/primitives.js';
import { IN_TOTO_PAYLOAD_TYPE } from '../../statement/dsse.js';
import type { PublicStatement } from '../../statement/public-statement.js';
import {
  isPublic,
  metadataCommitment,
  parseStatement,
  SALT_BYTES,
  type Statement,
  type StatementFields,
} from '../../statement/statement.js';
import { parseJsonText } from '../read/json-text.js';
import type { ParsedBundle } from '../read/parsed-bundle.js';
import { problemOf } from '../read/read-json.js';
import { type Check, failed, missing, notChecked, passed } from '../report.js';
import { checkIdentity, type IdentityAsked } from './identity-checks.js';

const MAX_METADATA_CHARACTERS = 1024 * 1024;

/** The expected subject of the statement. */
export type Asked = IdentityAsked & {
  /** The artifact's bytes. */
  readonly artifact?: Uint8Array | undefined;
  /** The artifact's SHA-256 in hex, of either case. */
  readonly artifactSha256?: string | undefined;
  /**
   * The attested metadata, `schema` included, as in the submission: parsed, or as JSON text or its UTF-8 bytes, whose
   * integers must all be exact as doubles. Of a public statement it is compared with the predicate, `schema` aside.
   */
  readonly metadata?: unknown;
  /** Salt that opens the commitment: 32 bytes, or hex as in the submission. A public statement has none. */
  readonly metadataSalt?: string | Uint8Array | undefined;
  readonly environment: EnvironmentName;
  /** The project that must have attested, `prj_` and a ULID; any project by default. */
  readonly project?: string | undefined;
};

/**
 * Checks the statement. Returns it if it can be parsed, signed or not, and the metadata if it opens the commitment. One of a form that this version does not know is
 * not checked if a trusted key has signed it. `isOfSet`: the artifact may be an entry of a set whose head is the subject.
 */
export function checkStatement(
  parsed: ParsedBundle,
  asked: Asked,
  { isSigned, isOfSet }: { readonly isSigned: boolean; readonly isOfSet: boolean },
): { checks: Check[]; statement?: Statement; metadata?: unknown } {
  if (parsed.isErased) return { checks: [erased(parsed)] };
  try {
    const { payload, payloadType } = parsed.envelope;
    if (payloadType !== IN_TOTO_PAYLOAD_TYPE)
      throw new FormatError('the payload is not an in-toto statement');
    const statement = parseStatement(payload);
    const { check, metadata } = checkMetadata(statement, asked);
    const checks = [
      ...checkSubmission(parsed, statement),
      ...checkArtifact(statement, asked, isOfSet),
      checkEnvironment(statement, asked),
      checkProject(statement, asked),
      ...checkIdentity(statement, asked),
      check,
    ];
    return { checks, statement, ...(metadata !== undefined && { metadata }) };
  } catch (error) {
    if (isSigned) {
      const message = 'the signed statement has a form or members that this version does not know';
      return { checks: [missing('statement.unknown_form', message)] };
    }
    const path = '/sigstore_bundle/dsseEnvelope/payload';
    return { checks: [failed('statement.malformed', problemOf(error), path)] };
  }
}

function erased({ submission: { statementErasedAt } }: ParsedBundle): Check {
  const at = statementErasedAt && ` at ${timestampDate(statementErasedAt).toISOString()}`;
  const message = `the service erased the signed statement${at ?? ''}: what was attested, and by whom, cannot be checked`;
  return missing('statement.erased', message);
}

/** Notes a `submitted_at` later than the proven time. It is the service's clock, and proves nothing. */
export function remarkSubmittedAt(statement: Statement | undefined, existedBy: Date | undefined): Check[] {
  if (statement === undefined || existedBy === undefined) return [];
  const { submittedAt } = statement;
  if (Date.parse(submittedAt) <= existedBy.getTime()) return [];
  const proven = `the time that is proven, ${existedBy.toISOString()}`;
  const message = `submitted_at, which nothing proves, is ${submittedAt}, later than ${proven}: clocks differ`;
  return [notChecked('statement.submitted_at_later', message)];
}

/** Compares the bundle's plain members with the signed statement. */
function checkSubmission({ submission }: ParsedBundle, statement: Statement): Check[] {
  const submittedAt = submission.submittedAt && timestampDate(submission.submittedAt).toISOString();
  const hasSubMillis = submission.submittedAt !== undefined && submission.submittedAt.nanos % 1_000_000 !== 0;
  const members: [member: string, isSame: boolean][] = [
    ['id', submission.id === statement.submissionId],
    ['submitted_at', submittedAt === statement.submittedAt && !hasSubMillis],
    ['environment', submission.environment === environmentNumber(statement.environment)],
    ['artifact_sha256', submission.artifactSha256 === statement.artifactSha256],
  ];
  return members
    .filter(([, isSame]) => !isSame)
    .map(([member]) =>
      failed(
        'statement.mismatch',
        `the bundle's ${member} is not that of the signed statement`,
        `/submission/${member}`,
      ),
    );
}

/** The digests of the artifact that were given, in lower case; they may be malformed. */
export function artifactDigests({ artifact, artifactSha256 }: Asked): string[] {
  return [artifact && toHex(sha256(artifact)), artifactSha256?.toLowerCase()].filter(
    (digest) => digest !== undefined,
  );
}

/** A SHA-256 in lower-case hex. */
export const SHA256 = /^[0-9a-f]{64}$/;

function checkArtifact(statement: Statement, asked: Asked, isOfSet: boolean): Check[] {
  const digests = artifactDigests(asked);
  if (digests.length === 0 && !isOfSet) {
    return [missing('artifact.not_given', 'no artifact was given to compare with')];
  }
  return digests.map((digest) => {
    if (!SHA256.test(digest)) {
      return missing('artifact.invalid_digest', 'the digest given is not a SHA-256 in hex');
    }
    if (digest === statement.artifactSha256) {
      return passed('artifact.matches', 'the artifact is the one that was attested');
    }
    if (isPublic(statement) && statement.otherSubjects.some(({ sha256 }) => sha256 === digest)) {
      return passed('artifact.matches', 'the artifact is one of the subjects that were attested');
    }
    return isOfSet
      ? notChecked('artifact.in_set', 'what was attested is not the artifact but the head of a set')
      : failed('artifact.mismatch', 'the artifact is not the one that was attested');
  });
}

function checkEnvironment({ environment }: Statement, asked: Asked): Check {
  return environment === asked.environment
    ? passed('environment.matches', `the environment is ${environment}`)
    : failed(
        'environment.mismatch',
        `the bundle is of the ${environment} environment, not ${asked.environment}`,
      );
}

/** Every project can attest any artifact: a caller who expects one project has to name it. */
function checkProject({ project }: Statement, asked: Asked): Check {
  if (asked.project === undefined) {
    const message = 'no project was asked for, and every project of the service can attest any artifact';
    return notChecked('project.not_given', message);
  }
  return project === asked.project
    ? passed('project.matches', `the project ${project} attested it`)
    : failed('project.mismatch', `the project ${project} attested it, not ${asked.project}`);
}

function checkMetadata(
  statement: Statement,
  { metadata, metadataSalt }: Asked,
): { check: Check; metadata?: unknown } {
  if (metadata === undefined)
    return { check: notChecked('metadata.not_given', 'no metadata was given to compare with') };
  if (metadataSalt === undefined && !isPublic(statement))
    return { check: missing('metadata.no_salt', 'metadata was given without its salt') };
  try {
    const value = typeof metadata === 'string' || isBytes(metadata) ? parseMetadata(metadata) : metadata;
    const isAttested = isPublic(statement)
      ? isPredicate(statement, value)
      : isOpenedBy(statement, value, metadataSalt);
    if (!isAttested) return { check: failed('metadata.mismatch', 'the metadata is not what was attested') };
    const check = passed('metadata.matches', 'the metadata is what was attested');
    return isPublic(statement) ? { check } : { check, metadata: value };
  } catch (error) {
    return { check: missing('metadata.unreadable', `metadata or salt: ${problemOf(error)}`) };
  }
}

function isPredicate({ predicate }: PublicStatement, metadata: unknown): boolean {
  if (schemaOf(metadata) === undefined) return false;
  const { schema: _, ...members } = metadata as Record<string, unknown>;
  return jcs(members) === jcs(predicate);
}

function isOpenedBy(
  { schema, commitment }: StatementFields,
  metadata: unknown,
  metadataSalt: string | Uint8Array = '',
): boolean {
  const salt =
    typeof metadataSalt === 'string' ? fromHex(metadataSalt.toLowerCase(), SALT_BYTES) : metadataSalt;
  return metadataCommitment(salt, jcsBytes(metadata)) === commitment && schemaOf(metadata) === schema;
}

/** Parses metadata as strictly as the service does. */
function parseMetadata(text: string | Uint8Array): unknown {
  const value = parseJsonText(text, MAX_METADATA_CHARACTERS);
  const [inexact] = findInexactIntegers(typeof text === 'string' ? text : fromUtf8(text));
  if (inexact !== undefined) throw new FormatError(`${inexact} ${INEXACT_INTEGER}`);
  return value;
}

function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array;
}

function schemaOf(metadata: unknown): unknown {
  const isObject = typeof metadata === 'object' && metadata !== null;
  return isObject && Object.hasOwn(metadata, 'schema') && 'schema' in metadata ? metadata.schema : undefined;
}
