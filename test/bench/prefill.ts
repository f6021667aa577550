import { createPublicKey, randomBytes } from 'node:crypto';
import { MetadataState } from '../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import {
  type NewSubmission,
  SubmissionOutcome,
  sequenceSubmissions,
} from '../../src/server/attestations/sequence/sequence-submissions.js';
import { createRandomSource } from '../../src/server/core/random.js';
import type { Pool } from '../../src/server/database/connect.js';
import { openSecrets } from '../../src/server/embedded/secrets.js';
import { openLogKeys } from '../../src/server/log/log-keys.js';
import { setUpLogs } from '../../src/server/log/set-up-logs.js';
import { ensureDsseKey, listDsseKeys } from '../../src/server/log/store/dsse-keys.js';
import { findActiveLog, listLogs } from '../../src/server/log/store/logs.js';
import { fileKey } from '../support/certificates/file-key.js';

const ROWS_PER_CALL = 500;
const ROWS_PER_STATEMENT = 250_000;
const RETENTION_MS = 86_400_000;
const METADATA = '{"purl":"pkg:npm/%40scope/name@1.2.3?arch=x64","run":1,"schema":"purl"}';
/** What one in 100,000 of very many submissions names. */
export const RARE_SCHEMA = 'slsa.provenance.v1';
const LIMITS = { perSecond: 1e9, perHour: 1e9, perDay: 1e9 };
const SIGNATURE_BYTES = 71;

/** Where rows are put. Its logs are made, and `dir` holds the secrets they are made with. */
export type Target = { pool: Pool; dir: string; projectId: string };

/** Makes logs and signing keys as a starting process does. @returns the live log's id and signing key's id */
export async function openLiveLog({
  pool,
  dir,
}: Omit<Target, 'projectId'>): Promise<{ logId: number; keyId: number }> {
  const secrets = await openSecrets(dir);
  await setUpLogs(pool, 'localhost', await openLogKeys(secrets, { add: () => {} }));
  const spki = createPublicKey(fileKey(secrets.dsse.live[0])).export({ type: 'spki', format: 'der' });
  await ensureDsseKey(pool, Environment.LIVE, spki);
  const key = (await listDsseKeys(pool)).find(({ environment }) => environment === Environment.LIVE);
  const log = findActiveLog(await listLogs(pool), Environment.LIVE);
  if (log === undefined || key === undefined) throw new Error('there is no live log, or no key for it');
  return { logId: log.id, keyId: key.id };
}

/** Appends submissions to the live log as the service does, 500 a call; hashes and signatures are random. */
export async function appendSubmissions(target: Target, count: number): Promise<void> {
  const { logId, keyId } = await openLiveLog(target);
  const random = createRandomSource();
  for (let done = 0; done < count; done += ROWS_PER_CALL) {
    const rows = Array.from({ length: Math.min(ROWS_PER_CALL, count - done) }, () =>
      newSubmission(target.projectId, keyId, random.ulid(Date.now())),
    );
    const results = await sequenceSubmissions(target.pool, logId, rows, false, RETENTION_MS);
    if (results.some(({ outcome }) => outcome !== SubmissionOutcome.STORED))
      throw new Error('a row was not stored');
  }
}

function randomHex(bytes: number): string {
  return randomBytes(bytes).toString('hex');
}

function newSubmission(projectId: string, dsseKeyId: number, ulid: string): NewSubmission {
  return {
    id: `sub_${ulid}`,
    projectId,
    apiKeyId: 'key_bench',
    submittedAtMs: Date.now(),
    artifactSha256: randomHex(32),
    schema: 'purl',
    metadata: METADATA,
    metadataErrors: null,
    build: null,
    statement: null,
    salt: randomHex(32),
    commitment: randomHex(32),
    dsseKeyId,
    signature: randomHex(SIGNATURE_BYTES),
    leafHash: randomHex(32),
    idempotency: undefined,
    limits: LIMITS,
  };
}

/**
 * Appends very many submissions to an empty live log by SQL alone. Their ids are well-formed and ascend; everything
 * that is random in real ones is a hash of the index here.
 */
export async function generateSubmissions(target: Target, count: number): Promise<void> {
  const { pool, projectId } = target;
  const { logId, keyId } = await openLiveLog(target);
  const schemas = ['purl', RARE_SCHEMA];
  await pool`SELECT number_names(true, '{NULL,NULL}', '{1,1}', ${[projectId]}, ${schemas})`;
  for (let first = 0; first < count; first += ROWS_PER_STATEMENT) {
    const last = Math.min(count, first + ROWS_PER_STATEMENT) - 1;
    await pool`
      INSERT INTO submission (log_id, log_index, id, project_number, submitted_at, artifact_sha256, schema_number, metadata,
                              metadata_state, salt, commitment, dsse_key_id, signature, leaf_hash)
      SELECT ${logId}, i, 'sub_00' || upper(lpad(to_hex(i), 8, '0')) || upper(substr(md5(i::text), 1, 16)), hashtext(${projectId}),
             now() - (${count} - i) * interval '1 millisecond', h.hash,
             hashtext(${projectId} || E'\\n' || CASE WHEN i % 100000 = 7 THEN ${RARE_SCHEMA} ELSE 'purl' END), ${METADATA}, ${MetadataState.VALID}, h.hash,
             h.hash, ${keyId}, h.hash || h.hash || substr(h.hash, 1, ${SIGNATURE_BYTES - 64}), h.hash
      FROM generate_series(${first}::bigint, ${last}::bigint) i, LATERAL (SELECT sha256(int8send(i)) AS hash) h`;
  }
  await pool`VACUUM (ANALYZE) submission`;
}
