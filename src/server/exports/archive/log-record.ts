/**
 * The record of a log that has ended, beside its archived days: what they lack to put it into another database. A DSSE
 * envelope over an in-toto statement whose subjects are the days' manifests, signed as these are.
 */
import { fromUtf8, utf8 } from '../../../proof/bytes/encoding.js';
import { jcsBytes } from '../../../proof/bytes/jcs.js';
import { readManifestEnvelope } from '../../../proof/export/read-manifest.js';
import { STATEMENT_TYPE } from '../../../proof/statement/stated-submission.js';
import { environmentName, environmentNumber } from '../../../protocol/environment.js';
import { PROJECT_ID } from '../../../protocol/ids.js';
import type { Sql } from '../../database/connect.js';
import type { Log } from '../../log/store/logs.js';
import { ArchiveError } from './archive-error.js';
import { HASH, HEX, type Members, openMembers, parseJson, TIME } from './members.js';

const LOG_RECORD_TYPE = 'urn:attestation-service:archived-log:v1';

/** A day's manifest: `name` below the folder of the log, `2026/01/02/manifest.json`, and its SHA-256 in hex. */
export type ArchivedDay = { readonly name: string; readonly sha256: string };

/** A log that has ended; bytes in hex, times in ISO 8601. `environment` is a proto number. */
export type LogRecord = {
  readonly origin: string;
  readonly environment: number;
  readonly lane: number;
  readonly epoch: number;
  readonly publicKey: string;
  readonly mlDsaPublicKey: string | null;
  readonly receiptSpki: string | null;
  readonly createdAt: string;
  readonly endedAt: string;
  readonly treeSize: number;
  readonly days: readonly ArchivedDay[];
  readonly projects: readonly { id: string; name: string; createdAt: string }[];
  readonly dsseKeys: readonly { spki: string; validFrom: string; validTo: string | null }[];
  readonly policies: readonly PolicyRecord[];
  readonly authorities: readonly AuthorityRecord[];
  readonly witnesses: readonly WitnessRecord[];
};

/** When verifiers trust something. */
type Validity = { validFrom: string; validTo: string | null };

/** A time-stamping authority of the trust roots. */
type AuthorityRecord = Validity & {
  name: string;
  url: string;
  operator: string;
  certChainPem: readonly unknown[];
};

/** A witness of another kind in the trust roots; `identity` as it is stored. */
type WitnessRecord = Validity & { name: string; identity: unknown };

/** A witness policy of the log's environment; `witnesses` and `quorums` as they are stored. */
type PolicyRecord = {
  version: number;
  witnesses: unknown;
  quorums: unknown;
  deadlineMs: number;
  createdAt: string;
};

const DAY_MANIFEST = /^\d{4}\/\d\d\/\d\d\/manifest\.json$/;
const WITNESS_NAME = /^[a-z0-9-]{1,64}$/;
const MAX_NAME = 1_000;

/** Reads what the tables have of a log for its record. */
export async function readLogRecord(
  sql: Sql,
  log: Log,
  { treeSize, days }: Pick<LogRecord, 'treeSize' | 'days'>,
): Promise<LogRecord> {
  if (log.endedAt === null) throw new ArchiveError(`the log ${log.origin} has not ended`);
  const projects = await sql<{ id: string; name: string; createdAt: Date }[]>`
    SELECT p.id, p.name, p.created_at AS "createdAt" FROM project p
    WHERE EXISTS (SELECT FROM batch_content c WHERE c.project_id = p.id AND c.log_id = ${log.id}) ORDER BY p.id`;
  const keys = await sql<{ spki: Uint8Array; validFrom: Date; validTo: Date | null }[]>`
    SELECT spki, valid_from AS "validFrom", valid_to AS "validTo" FROM dsse_key
    WHERE environment = ${log.environment} ORDER BY id`;
  const policies = await sql<
    { version: number; witnesses: unknown; quorums: unknown; deadlineMs: number; createdAt: Date }[]
  >`
    SELECT version, witnesses, quorums, deadline_ms AS "deadlineMs", created_at AS "createdAt" FROM policy
    WHERE environment = ${log.environment} ORDER BY version`;
  const authorities = await sql<(Dated & Omit<AuthorityRecord, keyof Validity>)[]>`
    SELECT name, url, operator, cert_chain_pem AS "certChainPem", valid_from AS "validFrom", valid_to AS "validTo"
    FROM timestamp_authority ORDER BY id`;
  const witnesses = await sql<(Dated & Omit<WitnessRecord, keyof Validity>)[]>`
    SELECT name, identity, valid_from AS "validFrom", valid_to AS "validTo" FROM trusted_witness ORDER BY id`;
  return {
    origin: log.origin,
    environment: log.environment,
    lane: log.lane,
    epoch: log.epoch,
    publicKey: hex(log.publicKey),
    mlDsaPublicKey: log.mlDsaPublicKey && hex(log.mlDsaPublicKey),
    receiptSpki: log.receiptSpki && hex(log.receiptSpki),
    createdAt: log.createdAt.toISOString(),
    endedAt: log.endedAt.toISOString(),
    treeSize,
    days,
    projects: projects.map((one) => ({ ...one, createdAt: one.createdAt.toISOString() })),
    dsseKeys: keys.map(({ spki, ...dates }) => ({ spki: hex(spki), ...validityOf(dates) })),
    policies: policies.map((one) => ({ ...one, createdAt: one.createdAt.toISOString() })),
    authorities: authorities.map((one) => ({ ...one, ...validityOf(one) })),
    witnesses: witnesses.map((one) => ({ ...one, ...validityOf(one) })),
  };
}

type Dated = { validFrom: Date; validTo: Date | null };

function validityOf({ validFrom, validTo }: Dated): Validity {
  return { validFrom: validFrom.toISOString(), validTo: validTo?.toISOString() ?? null };
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** The statement to sign, its JCS. */
export function logRecordStatement(record: LogRecord): Uint8Array {
  const { days, environment, origin, lane, epoch, treeSize } = record;
  return jcsBytes({
    _type: STATEMENT_TYPE,
    predicate: {
      authorities: record.authorities.map(({ name, url, operator, certChainPem, validFrom, validTo }) => ({
        cert_chain_pem: certChainPem,
        name,
        operator,
        url,
        valid_from: validFrom,
        valid_to: validTo,
      })),
      created_at: record.createdAt,
      dsse_keys: record.dsseKeys.map(({ spki, validFrom, validTo }) => ({
        spki,
        valid_from: validFrom,
        valid_to: validTo,
      })),
      ended_at: record.endedAt,
      environment: environmentName(environment),
      epoch,
      lane,
      ml_dsa_public_key: record.mlDsaPublicKey,
      origin,
      policies: record.policies.map(({ version, witnesses, quorums, deadlineMs, createdAt }) => ({
        created_at: createdAt,
        deadline_ms: deadlineMs,
        quorums,
        version,
        witnesses,
      })),
      projects: record.projects.map(({ id, name, createdAt }) => ({ created_at: createdAt, id, name })),
      public_key: record.publicKey,
      receipt_spki: record.receiptSpki,
      tree_size: treeSize,
      witnesses: record.witnesses.map(({ name, identity, validFrom, validTo }) => ({
        identity,
        name,
        valid_from: validFrom,
        valid_to: validTo,
      })),
    },
    predicateType: LOG_RECORD_TYPE,
    subject: days.map(({ name, sha256 }) => ({ digest: { sha256 }, name })),
  });
}

/** Reads a record and what its signature is over. Throws ArchiveError, or FormatError of the envelope. */
export function parseLogRecord(bytes: Uint8Array) {
  const envelope = readManifestEnvelope(bytes);
  const statement = openMembers(parseJson(fromUtf8(envelope.statement), 'log.json'), 'log.json');
  if (statement.value('predicateType') !== LOG_RECORD_TYPE)
    throw new ArchiveError(`log.json is not the record of an archived log (${LOG_RECORD_TYPE})`);
  const log = openMembers(statement.value('predicate'), 'log.json');
  const environment = log.text('environment', /^(?:live|test)$/) as 'live' | 'test';
  const record: LogRecord = {
    origin: log.text('origin', /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/),
    environment: environmentNumber(environment),
    lane: log.integer('lane'),
    epoch: log.integer('epoch'),
    publicKey: log.text('public_key', HASH),
    mlDsaPublicKey: log.optional('ml_dsa_public_key', HEX),
    receiptSpki: log.optional('receipt_spki', HEX),
    createdAt: log.text('created_at', TIME),
    endedAt: log.text('ended_at', TIME),
    treeSize: log.integer('tree_size'),
    days: statement.list('subject').map(readDay),
    projects: log.list('projects').map(readProject),
    dsseKeys: log.list('dsse_keys').map(readKey),
    policies: log.list('policies').map(readPolicy),
    authorities: log.list('authorities').map(readAuthority),
    witnesses: log.list('witnesses').map(readWitness),
  };
  return { record, ...envelope };
}

function readDay(value: unknown): ArchivedDay {
  const subject = openMembers(value, 'a subject of log.json');
  const digest = openMembers(subject.value('digest'), 'a digest of log.json');
  return { name: subject.text('name', DAY_MANIFEST), sha256: digest.text('sha256', HASH) };
}

function readProject(value: unknown) {
  const project = openMembers(value, 'a project of log.json');
  const name = project.text('name');
  if (utf8(name).length > MAX_NAME) throw new ArchiveError('a project of log.json has too long a name');
  return { id: project.text('id', PROJECT_ID), name, createdAt: project.text('created_at', TIME) };
}

function readKey(value: unknown) {
  const key = openMembers(value, 'a key of log.json');
  return { spki: key.text('spki', HEX), ...readValidity(key) };
}

function readValidity(members: Members): Validity {
  return { validFrom: members.text('valid_from', TIME), validTo: members.optional('valid_to', TIME) };
}

function readAuthority(value: unknown): AuthorityRecord {
  const authority = openMembers(value, 'an authority of log.json');
  const certChainPem = authority.list('cert_chain_pem');
  if (certChainPem.some((pem) => typeof pem !== 'string' || pem.includes('\0')))
    throw new ArchiveError('an authority of log.json has no valid chain');
  return {
    name: authority.text('name', WITNESS_NAME),
    url: authority.text('url'),
    operator: authority.text('operator'),
    certChainPem,
    ...readValidity(authority),
  };
}

function readWitness(value: unknown): WitnessRecord {
  const witness = openMembers(value, 'a witness of log.json');
  if (witness.object('identity') === undefined)
    throw new ArchiveError('a witness of log.json has no identity');
  return {
    name: witness.text('name', WITNESS_NAME),
    identity: witness.value('identity'),
    ...readValidity(witness),
  };
}

function readPolicy(value: unknown): PolicyRecord {
  const policy = openMembers(value, 'a policy of log.json');
  return {
    version: policy.integer('version'),
    witnesses: policy.list('witnesses'),
    quorums: policy.list('quorums'),
    deadlineMs: policy.integer('deadline_ms'),
    createdAt: policy.text('created_at', TIME),
  };
}
