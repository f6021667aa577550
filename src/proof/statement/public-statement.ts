/**
 * The in-toto Statement v1 of a public submission: the metadata is its predicate, so that anyone's policy can decide on it.
 * The first subject is the artifact; its annotation `attestation_service` binds the statement to its submission.
 */
import type { JsonObject } from '@bufbuild/protobuf';
import { parseIdentity } from '../../protocol/identity.js';
import { fromUtf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { jcs } from '../bytes/jcs.js';
import { STATEMENT_TYPE, type StatedSubmission } from './stated-submission.js';

/** The maximum of a public statement, in bytes of UTF-8. */
export const MAX_PUBLIC_STATEMENT_BYTES = 128 * 1024;

/** The maximum of subjects, the artifact included: that of sigstore-go, and so of cosign. */
export const MAX_SUBJECTS = 1024;

/** A further artifact of a submission: its SHA-256 in lower-case hex, and the submitter's name for it. */
export type Subject = { readonly name?: string | undefined; readonly sha256: string };

/** The fields of a public statement. `predicate` is the metadata without its member `schema`. */
export interface PublicStatement extends StatedSubmission {
  readonly otherSubjects: readonly Subject[];
  readonly predicateType: string;
  readonly predicate: JsonObject;
}

/** The statement's text: its JCS. */
export function publicStatementText(fields: PublicStatement): string {
  return publicTextOf(fields, jcs(fields.predicate));
}

/**
 * The same, given the JCS of the predicate. Written out directly because this runs for every public submission; members are
 * in the order of RFC 8785.
 */
export function publicTextOf(fields: Omit<PublicStatement, 'predicate'>, predicate: string): string {
  const { environment, identity, project, submissionId, submittedAt, otherSubjects } = fields;
  const ofIdentity = identity === undefined ? '' : `"identity":${jcs(identity)},`;
  const service =
    `{"environment":${jcs(environment)},${ofIdentity}"project":${jcs(project)},` +
    `"submission_id":${jcs(submissionId)},"submitted_at":${jcs(submittedAt)}}`;
  let subjects = `{"annotations":{"attestation_service":${service}},${subjectMembers({
    sha256: fields.artifactSha256,
    name: fields.artifactName,
  })}}`;
  for (const subject of otherSubjects) subjects += `,{${subjectMembers(subject)}}`;
  return (
    `{"_type":"${STATEMENT_TYPE}","predicate":${predicate},` +
    `"predicateType":${jcs(fields.predicateType)},"subject":[${subjects}]}`
  );
}

function subjectMembers({ sha256, name }: Subject): string {
  return `"digest":{"sha256":${jcs(sha256)}}${name === undefined ? '' : `,"name":${jcs(name)}`}`;
}

/** Every subject of a public statement, the artifact first. */
export function subjectsOf(statement: PublicStatement): Subject[] {
  const { artifactSha256: sha256, artifactName: name, otherSubjects } = statement;
  return [{ sha256, name }, ...otherSubjects];
}

/** Reads a statement's parsed JSON. Throws FormatError unless `bytes` are exactly what {@link publicStatementText} makes of it. */
export function parsePublicStatement(
  json: ReturnType<typeof JSON.parse>,
  bytes: Uint8Array,
): PublicStatement {
  if (bytes.length > MAX_PUBLIC_STATEMENT_BYTES)
    throw new FormatError('a public statement is longer than 128 KiB');
  const fields = fieldsOf(json);
  if (publicStatementText(fields) !== fromUtf8(bytes))
    throw new FormatError('a public statement is not canonical, or has unknown members');
  return fields;
}

function fieldsOf(json: ReturnType<typeof JSON.parse>): PublicStatement {
  const { subject, predicate, predicateType } = json;
  if (!Array.isArray(subject) || subject.length > MAX_SUBJECTS)
    throw new FormatError(`a statement has no list of at most ${MAX_SUBJECTS} subjects`);
  if (typeof predicate !== 'object' || predicate === null || Array.isArray(predicate))
    throw new FormatError('a predicate is not an object');
  const [first, ...others] = subject;
  const service = first?.annotations?.attestation_service;
  const environment = service?.environment;
  if (environment !== 'live' && environment !== 'test') throw new FormatError('an environment is not known');
  const { sha256, name } = readSubject(first);
  const identity = parseIdentity(service.identity);
  return {
    artifactSha256: sha256,
    ...(name !== undefined && { artifactName: name }),
    submissionId: textOf(service.submission_id),
    project: textOf(service.project),
    submittedAt: textOf(service.submitted_at),
    environment,
    ...(identity && { identity }),
    otherSubjects: others.map(readSubject),
    predicateType: textOf(predicateType),
    predicate,
  };
}

function readSubject(subject: ReturnType<typeof JSON.parse>): Subject {
  const name = subject?.name;
  return { sha256: textOf(subject?.digest?.sha256), ...(typeof name === 'string' && { name }) };
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new FormatError('a member of a statement is not a text');
  return value;
}
