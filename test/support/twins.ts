import type postgres from 'postgres';

/** Finds two names that begin with a prefix and whose hashes, by which indexes of submissions find them, are equal. */
export async function findTwins(
  sql: postgres.ISql<{ bigint: number }>,
  prefix: string,
): Promise<[string, string]> {
  const [twins] = await sql<{ names: [string, string] }[]>`
    SELECT (array_agg(name))[1:2] AS names FROM (SELECT ${prefix} || i AS name FROM generate_series(1, 400000) i) made
    GROUP BY hashtext(name) HAVING count(*) > 1 LIMIT 1`;
  if (twins === undefined) throw new Error(`no two names that begin with ${prefix} have the same hash`);
  return twins.names;
}
