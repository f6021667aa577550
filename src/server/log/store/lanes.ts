import type { Principal } from '../../core/principal.js';
import type { Sql } from '../../database/connect.js';

/** Reads the lane that a project's submissions go to. */
export async function findProjectLane(
  sql: Sql,
  { projectId, environment }: Pick<Principal, 'projectId' | 'environment'>,
): Promise<number> {
  const [row] = await sql<{ lane: number }[]>`
    SELECT lane FROM project_lane WHERE project_id = ${projectId} AND environment = ${environment}`;
  return row?.lane ?? 1;
}
