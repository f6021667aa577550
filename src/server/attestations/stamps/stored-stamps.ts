/** Time stamps over the signatures of submissions, in the database. */
import { byteaArray, type Sql } from '../../database/connect.js';

/** The place of a leaf. */
export type LeafPlace = { readonly logId: number; readonly logIndex: number };

/** A stored stamp: the authority's name among the witnesses, and its TimeStampResp (DER) in base64. */
export type StoredStamp = { readonly witness: string; readonly response: string };

/** A verified stamp to store: its TimeStampResp in DER, and the time that it states. */
export type NewStamp = LeafPlace & {
  readonly witness: string;
  readonly response: Uint8Array;
  readonly genTime: Date;
};

/** The most stamps of a bundle: verifiers read no more. Those of former authorities count. */
const MAX_STAMPS = 16;

/**
 * The stamps of a leaf `s` as text, for {@link parseStamps}. In the order of the primary key, so that no plan reads the whole
 * table or sorts.
 */
export const stampsText = (sql: Sql) => sql`
  array_to_string(ARRAY(
    SELECT t.witness || ' ' || translate(encode(t.response, 'base64'), E'\n', '') FROM signature_stamp t
    WHERE t.log_id = s.log_id AND t.log_index = s.log_index
    ORDER BY t.log_id, t.log_index, t.witness LIMIT ${MAX_STAMPS}::int), E'\n')`;

/** Reads the text of stamps; empty text has none. */
export function parseStamps(text: string): StoredStamp[] {
  if (text === '') return [];
  return text.split('\n').map((line) => {
    const [witness = '', response = ''] = line.split(' ');
    return { witness, response };
  });
}

/** Lists the stamps of leaves, as {@link parseStamps} reads them. Leaves without one are not in the map. */
export async function listStamps(
  sql: Sql,
  logId: number,
  logIndexes: readonly number[],
): Promise<Map<number, string>> {
  const rows = await sql<{ logIndex: number; stamps: string }[]>`
    SELECT s.log_index AS "logIndex", ${stampsText(sql)} AS stamps
    FROM (SELECT DISTINCT ON (t.log_index) t.log_id, t.log_index FROM signature_stamp t
          WHERE t.log_id = ${logId} AND t.log_index = ANY(${[...logIndexes]}::bigint[])) s`;
  return new Map(rows.map(({ logIndex, stamps }) => [logIndex, stamps]));
}

/**
 * Stores stamps, of each leaf and witness the first: of processes that store at once, the one that commits first. A stamp by
 * an authority that verifiers did not trust at its time is not stored: many accept no bundle with such a stamp.
 *
 * @returns what is stored, by {@link stampKey}
 */
export async function storeStamps(sql: Sql, stamps: readonly NewStamp[]): Promise<Map<string, string>> {
  const columns = {
    logId: stamps.map(({ logId }) => logId),
    logIndex: stamps.map(({ logIndex }) => logIndex),
    witness: stamps.map(({ witness }) => witness),
  };
  const given = sql`
    unnest(${columns.logId}::integer[], ${columns.logIndex}::bigint[], ${columns.witness}::text[],
           ${byteaArray(
             sql,
             stamps.map(({ response }) => response),
           )}::bytea[],
           ${stamps.map(({ genTime }) => genTime.toISOString())}::timestamptz[])
      AS given(log_id, log_index, witness, response, gen_time)`;
  // In the order of the key, so that two processes that store the same leaves do not deadlock.
  await sql`
    INSERT INTO signature_stamp (log_id, log_index, witness, response)
    SELECT log_id, log_index, witness, response FROM ${given}
    WHERE EXISTS (SELECT FROM timestamp_authority a
      WHERE a.name = given.witness AND gen_time >= a.valid_from AND gen_time <= coalesce(a.valid_to, 'infinity'))
    ORDER BY log_id, log_index, witness
    ON CONFLICT DO NOTHING`;
  const rows = await sql<(LeafPlace & StoredStamp)[]>`
    SELECT t.log_id AS "logId", t.log_index AS "logIndex", t.witness,
           translate(encode(t.response, 'base64'), E'\n', '') AS response
    FROM unnest(${columns.logId}::integer[], ${columns.logIndex}::bigint[], ${columns.witness}::text[])
      AS given(log_id, log_index, witness)
    JOIN signature_stamp t USING (log_id, log_index, witness)`;
  return new Map(rows.map((row) => [stampKey(row), row.response]));
}

/** Names a stamp. */
export function stampKey({ logId, logIndex, witness }: LeafPlace & { readonly witness: string }): string {
  return `${logId}/${logIndex}/${witness}`;
}
