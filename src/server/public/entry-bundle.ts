import { toBase64, toHex } from '../../proof/bytes/encoding.js';
import { encodeEntries } from '../../proof/log/entries.js';
import { statementText } from '../../proof/statement/statement.js';
import { environmentName } from '../../protocol/environment.js';
import { recordText, recordTextOf, signedText } from '../attestations/leaf-text.js';
import { etagOf } from '../core/http/etag.js';
import type { Pool } from '../database/connect.js';
import { formatMs } from '../json/well-known-types.js';
import type { LogCache } from '../log/log-cache.js';
import { type LeafRow, readLeafRows } from '../log/store/leaves.js';
import type { Log } from '../log/store/logs.js';

/** The bytes of an entry bundle, and their entity tag. */
type EntryBundle = { bytes: Uint8Array; etag: string };

/** The log has no rows for entries below its size. */
export class MissingRowsError extends Error {}

/**
 * An entry bundle of the leaves `[first, end)`, rebuilt from the rows of their submissions. Throws `MissingRowsError` if a
 * row is missing.
 */
export async function readEntryBundle(
  pool: Pool,
  logCache: LogCache,
  log: Log,
  first: number,
  end: number,
): Promise<EntryBundle> {
  const rows = await readLeafRows(pool, log.id, first, end);
  if (rows.length !== end - first) {
    throw new MissingRowsError(`${log.origin} has only ${rows.length} of the entries ${first} to ${end}`);
  }
  const keys = new Map<number, string>();
  for (const { dsseKeyId } of rows) {
    if (!keys.has(dsseKeyId)) keys.set(dsseKeyId, toBase64((await logCache.getDsseKey(dsseKeyId)).spki));
  }
  const bytes = encodeEntries(rows.map((row) => recordOf(log, row, keys.get(row.dsseKeyId) as string)));
  return { bytes, etag: etagOf(bytes) };
}

function recordOf({ environment }: Log, row: LeafRow, publicKey: string): Uint8Array {
  const signature = toBase64(row.signature);
  if (row.isStored) return Buffer.from(recordTextOf(row.commitment, signature, publicKey));
  const statement = statementText({
    artifactSha256: toHex(row.artifactSha256),
    submissionId: row.id,
    project: row.projectId,
    submittedAt: formatMs(row.submittedAtMs),
    environment: environmentName(environment),
    schema: row.schema,
    commitment: toHex(row.commitment),
  });
  return Buffer.from(recordText(signedText(statement), signature, publicKey));
}
