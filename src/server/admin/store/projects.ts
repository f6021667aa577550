import type { Sql } from '../../database/connect.js';
import type { ApiKeyLimits } from './api-keys.js';

/** The limits over all API keys of a project; null where they are the defaults. */
export type ProjectLimits = { [K in keyof ApiKeyLimits]: number | null };

/**
 * A project, which owns keys and submissions. `publicLookup`: whether strangers find its bundles by an artifact; null
 * as the setting PUBLIC_LOOKUP says.
 */
export type ProjectRow = ProjectLimits & {
  id: string;
  name: string;
  createdAt: Date;
  publicLookup: boolean | null;
};

const projectColumns = (sql: Sql) => sql`
  id, name, created_at AS "createdAt", public_lookup AS "publicLookup",
  submissions_per_second AS "submissionsPerSecond", submissions_per_hour AS "submissionsPerHour",
  submissions_per_day AS "submissionsPerDay", reads_per_second AS "readsPerSecond"`;

/** Inserts a project, and pins it, in each environment with several lanes, to the one that the fewest projects are pinned to. */
export async function insertProject(sql: Sql, project: { id: string; name: string }): Promise<void> {
  await sql`
    WITH added AS (INSERT INTO project (id, name) VALUES (${project.id}, ${project.name}) RETURNING id)
    INSERT INTO project_lane (project_id, environment, lane)
    SELECT DISTINCT ON (l.environment) added.id, l.environment, l.lane
    FROM added CROSS JOIN log l CROSS JOIN LATERAL (
      SELECT count(*) AS projects FROM project_lane p WHERE p.environment = l.environment AND p.lane = l.lane) pinned
    WHERE EXISTS (SELECT FROM log o WHERE o.environment = l.environment AND o.lane > 1)
    ORDER BY l.environment, pinned.projects, l.lane`;
}

/** Finds a project by id. */
export async function findProject(sql: Sql, id: string): Promise<ProjectRow | undefined> {
  const rows = await sql<ProjectRow[]>`SELECT ${projectColumns(sql)} FROM project WHERE id = ${id}`;
  return rows[0];
}

/** Lists projects, newest first, below an id. */
export async function listProjects(
  sql: Sql,
  { before, limit }: { before: string | undefined; limit: number },
): Promise<ProjectRow[]> {
  return sql<ProjectRow[]>`
    SELECT ${projectColumns(sql)} FROM project
    ${before === undefined ? sql`` : sql`WHERE id < ${before}`} ORDER BY id DESC LIMIT ${limit}`;
}

/** Finds the oldest project. */
export async function findFirstProject(sql: Sql): Promise<ProjectRow | undefined> {
  const rows = await sql<ProjectRow[]>`SELECT ${projectColumns(sql)} FROM project ORDER BY id LIMIT 1`;
  return rows[0];
}

/** Locks a project until the transaction ends. */
export async function lockProject(tx: Sql, id: string): Promise<void> {
  await tx`SELECT FROM project WHERE id = ${id} FOR NO KEY UPDATE`;
}

/** Changes a project's name, settings and limits. */
export async function updateProject(sql: Sql, project: Omit<ProjectRow, 'createdAt'>): Promise<void> {
  await sql`
    UPDATE project SET name = ${project.name}, public_lookup = ${project.publicLookup},
      submissions_per_second = ${project.submissionsPerSecond}, submissions_per_hour = ${project.submissionsPerHour},
      submissions_per_day = ${project.submissionsPerDay}, reads_per_second = ${project.readsPerSecond}
    WHERE id = ${project.id}`;
}
