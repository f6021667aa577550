import type { WitnessKind } from '../../../../gen/attestation/v1/bundle_pb.js';
import type { Pool, Sql } from '../../database/connect.js';

/** The identity of a witness for verifiers; the members depend on its kind. */
export type WitnessIdentity =
  | { kind: WitnessKind.LOG_WITNESS; verifierKeys: string[] }
  | { kind: WitnessKind.OPENTIMESTAMPS; calendars: string[] }
  | { kind: WitnessKind.EVM; chainId: number; address: string; method: string; confirmations: number };

/** A witness that is or was trusted. */
export type TrustedWitnessRow = {
  name: string;
  identity: WitnessIdentity;
  validFrom: Date;
  validTo: Date | null;
};

/** Lists all trusted witnesses, current and former, oldest first. Time-stamping authorities have a table of their own. */
export async function listTrustedWitnesses(sql: Sql): Promise<TrustedWitnessRow[]> {
  return sql<TrustedWitnessRow[]>`
    SELECT name, identity, valid_from AS "validFrom", valid_to AS "validTo" FROM trusted_witness ORDER BY id`;
}

/** How long a replaced identity stays trusted, for workers that still run with it. */
const OVERLAP_MS = 60 * 60_000;

/**
 * Makes these the trusted witnesses. A former identity stays trusted for an hour, or for the deadline of pending batches
 * if that is longer; its earlier evidence stays valid.
 */
export async function replaceTrustedWitnesses(
  pool: Pool,
  witnesses: readonly Pick<TrustedWitnessRow, 'name' | 'identity'>[],
  deadlineMs: number,
): Promise<void> {
  const overlapMs = Math.max(OVERLAP_MS, deadlineMs);
  await pool.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(hashtextextended('trusted witnesses', 0))`;
    const configured = tx`
      SELECT name, identity FROM jsonb_to_recordset(${tx.json([...witnesses])}) AS c(name text, identity jsonb)`;
    await tx`
      UPDATE trusted_witness t
      SET valid_to = greatest(clock_timestamp(), valid_from) + ${overlapMs}::bigint * interval '1 millisecond'
      WHERE valid_to IS NULL AND (name, identity) NOT IN (${configured})`;
    await tx`
      INSERT INTO trusted_witness (name, identity)
      SELECT c.* FROM (${configured}) c
      WHERE NOT EXISTS (SELECT FROM trusted_witness t
        WHERE t.name = c.name AND t.identity = c.identity AND t.valid_to IS NULL)`;
  });
}
