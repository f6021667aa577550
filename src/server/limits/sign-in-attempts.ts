import type { Sql } from '../database/connect.js';

/** The attempts of a client in its window that were not successful, this one included, and what is left of the window. */
type Attempts = { count: number; leftMs: number };

/** Counts an attempt to sign in, also of those who are refused. A new window begins with the first one after `windowMs`. */
export async function countSignInAttempt(sql: Sql, peer: string, windowMs: number): Promise<Attempts> {
  const [row] = await sql<Attempts[]>`
    INSERT INTO sign_in_attempt AS a (peer, count, until)
    VALUES (${peer}, 1, clock_timestamp() + ${windowMs}::bigint * interval '1 millisecond')
    ON CONFLICT (peer) DO UPDATE SET
      count = CASE WHEN a.until > clock_timestamp() THEN least(a.count + 1, 1000000) ELSE 1 END,
      until = CASE WHEN a.until > clock_timestamp() THEN a.until ELSE excluded.until END
    RETURNING count, (extract(epoch FROM until - clock_timestamp()) * 1000)::float8 AS "leftMs"`;
  if (row === undefined) throw new Error('the attempt was not counted');
  return row;
}

/** Takes back the count of an attempt that was successful. */
export async function forgiveSignInAttempt(sql: Sql, peer: string): Promise<void> {
  await sql`UPDATE sign_in_attempt SET count = greatest(0, count - 1) WHERE peer = ${peer}`;
}

/** Deletes the counts of windows that are over. */
export async function pruneSignInAttempts(sql: Sql): Promise<void> {
  await sql`DELETE FROM sign_in_attempt WHERE until < clock_timestamp()`;
}
