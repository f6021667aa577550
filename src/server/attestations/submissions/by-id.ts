import type { Sql } from '../../database/connect.js';

/**
 * The condition that finds the submission `s` of an id by the index `submission_of_id`, which has fifteen
 * characters of the id, those behind `sub_`: its time and 25 random bits.
 */
export const isOfId = (sql: Sql, id: string) =>
  sql`substr(s.id, 5, 15) = substr(${id}::text, 5, 15) AND s.id = ${id}`;
