/** Checks the row of an archived submission: its leaf hash is computed anew from what was signed, and the signature. */
import { createHash } from 'node:crypto';
import { MetadataState } from '../../../../gen/attestation/v1/attestations_pb.js';
import { toBase64, utf8 } from '../../../proof/bytes/encoding.js';
import { metadataCommitment, parseStatement, statementText } from '../../../proof/statement/statement.js';
import { environmentName } from '../../../protocol/environment.js';
import { SUBMISSION_ID } from '../../../protocol/ids.js';
import { leafSha256, recordTextOf, signedText } from '../../attestations/leaf-text.js';
import { StatementVersion } from '../../attestations/statements/stored-statement.js';
import { ArchiveError } from './archive-error.js';
import { HASH, HEX, type Members, TIME } from './members.js';

/** What all rows of an archive share; `environment` is a proto number, keys are SPKI in hex. */
export type RowsOf = {
  readonly environment: number;
  readonly projects: ReadonlySet<string>;
  readonly dsseKeys: ReadonlySet<string>;
};

const SHORT = 1_000;

/** The row's id and leaf hash (hex). Throws ArchiveError unless the row has all members, and they agree with its leaf. */
export function checkRow(row: Members, logIndex: number, of: RowsOf): { id: string; leafHash: string } {
  const fail = (problem: string): never => {
    throw new ArchiveError(`leaf ${logIndex}: ${problem}`);
  };
  if (row.integer('log_index') !== logIndex) fail('another one is in its place');
  const id = row.text('id', SUBMISSION_ID);
  if (!of.projects.has(row.text('project'))) fail('its project is not in log.json');
  const dsseKey = row.text('dsse_key', HEX);
  if (!of.dsseKeys.has(dsseKey)) fail('its DSSE key is not in log.json');
  const stored = row.object('statement');
  const version = row.integer('statement_version');
  if (version < StatementVersion.OF_ROW || version > StatementVersion.PUBLIC)
    fail('its statement is of an unknown form');
  if ((version === StatementVersion.OF_ROW) !== (stored === undefined))
    fail('its statement is missing, or is one too many');
  checkPlain(row);
  const digest = stored === undefined ? digestOf(textOfRow(row, of)) : checkStored(row, stored, of, fail);
  const signature = Buffer.from(row.text('signature', HEX), 'hex').toString('base64');
  const key = Buffer.from(dsseKey, 'hex').toString('base64');
  const leafHash = leafSha256(recordTextOf(digest, signature, key));
  if (row.text('leaf_hash', HASH) !== leafHash) fail('its hash is not that of its statement and signature');
  if (!opensCommitment(row)) fail('its metadata is not what was attested');
  return { id, leafHash };
}

/** Members that the leaf does not cover: their forms only, since the manifest's signature covers them. */
function checkPlain(row: Members): void {
  if (row.text('schema').length > SHORT) throw new ArchiveError('a schema has too long a name');
  row.integer('metadata_state');
  row.optional('metadata');
  row.optional('metadata_errors');
  row.optional('attested_schema');
  row.optional('attested_metadata');
  row.optional('redacted_at', TIME);
  row.optional('build');
  for (const stamp of row.list('stamps'))
    if (!Array.isArray(stamp) || stamp.length !== 2 || !HEX.test(String(stamp[1])))
      throw new ArchiveError('a time stamp has another form');
}

/** The statement that is made of the row. */
function textOfRow(row: Members, { environment }: RowsOf): string {
  return statementText({
    artifactSha256: row.text('artifact_sha256', HASH),
    submissionId: row.text('id'),
    submittedAt: timeOf(row),
    environment: environmentName(environment),
    project: row.text('project'),
    schema: row.optional('attested_schema') ?? row.text('schema'),
    commitment: row.text('commitment', HASH),
  });
}

/** Statements have milliseconds. */
function timeOf(row: Members): string {
  return new Date(row.text('submitted_at', TIME)).toISOString();
}

function digestOf(text: string): Uint8Array {
  return createHash('sha256').update(signedText(text)).digest();
}

/** Checks a stored statement against its digest and the row. @returns the digest */
function checkStored(
  row: Members,
  stored: Members,
  { environment }: RowsOf,
  fail: (problem: string) => never,
): Uint8Array {
  const digest = Buffer.from(stored.text('digest', HASH), 'hex');
  const text = stored.optional('text');
  stored.optional('shown');
  stored.optional('erased_at', TIME);
  if (stored.list('subjects').some((subject) => !HASH.test(String(subject)))) fail('a subject is no SHA-256');
  if (text === null) {
    stored.text('erased_at', TIME);
    return digest;
  }
  if (toBase64(digestOf(text)) !== toBase64(digest)) fail('its statement is not the one that was signed');
  const statement = parseStatement(utf8(text));
  const isSame =
    statement.submissionId === row.text('id') &&
    statement.project === row.text('project') &&
    statement.artifactSha256 === row.text('artifact_sha256', HASH) &&
    statement.submittedAt === timeOf(row) &&
    statement.environment === environmentName(environment);
  if (!isSame) fail('its statement is of another submission');
  return digest;
}

/** Whether the metadata opens the commitment, as far as it is there. */
function opensCommitment(row: Members): boolean {
  const salt = row.optional('salt', HEX);
  const attested = row.optional('attested_metadata') ?? row.optional('metadata');
  if (row.integer('metadata_state') === MetadataState.REDACTED) return salt === null && attested === null;
  if (salt === null || attested === null) return true;
  return metadataCommitment(Buffer.from(salt, 'hex'), utf8(attested)) === row.text('commitment', HASH);
}
