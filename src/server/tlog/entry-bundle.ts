import { toBase64, utf8 } from '../../proof/bytes/encoding.js';
import { encodeEntries } from '../../proof/log/entries.js';
import { statementText } from '../../proof/statement/statement.js';
import { type EnvironmentName, environmentName } from '../../protocol/environment.js';
import type { LogCache } from '../logs/log-cache.js';
import { leafRecordOf } from '../rpc/attestations/bundles/leaf-text.js';
import type { Pool } from '../store/database/connect.js';
import { type LeafRow, readLeafRows } from '../store/log/leaves.js';
import type { Log } from '../store/log/logs.js';

/** An entry bundle of the leaves `[first, end)`, rebuilt from the rows of their submissions. Throws if a row is missing. */
export async function readEntryBundle(
  pool: Pool,
  logCache: LogCache,
  log: Log,
  first: number,
  end: number,
): Promise<Uint8Array> {
  const rows = await readLeafRows(pool, log.id, first, end);
  if (rows.length !== end - first) {
    throw new Error(`${log.origin} has only ${rows.length} of the entries ${first} to ${end}`);
  }
  const keys = new Map<number, string>();
  for (const { dsseKeyId } of rows) {
    if (!keys.has(dsseKeyId)) keys.set(dsseKeyId, toBase64((await logCache.getDsseKey(dsseKeyId)).spki));
  }
  const environment = environmentName(log.environment);
  return encodeEntries(rows.map((row) => leafRecordBytes(row, environment, keys.get(row.dsseKeyId) ?? '')));
}

function leafRecordBytes(row: LeafRow, environment: EnvironmentName, publicKey: string): Uint8Array {
  const statement = statementText({
    artifactSha256: row.artifactSha256,
    submissionId: row.id,
    project: row.projectId,
    submittedAt: new Date(row.submittedAtMs).toISOString(),
    environment,
    schema: row.schema,
    commitment: row.commitment,
  });
  return utf8(leafRecordOf(statement, row.signature, publicKey));
}
