import type { Sql } from '../database/connect.js';

/**
 * A project, which owns keys and submissions. `publicLookup`: whether strangers find its bundles by an artifact; null
 * as the setting PUBLIC_LOOKUP says.
 */
export type ProjectRow = { id: string; name: string; createdAt: Date; publicLookup: boolean | null };

const projectColumns = (sql: Sql) =>
  sql`id, name, created_at AS "createdAt", public_lookup AS "publicLookup"`;

/** Inserts a project. */
export async function insertProject(sql: Sql, project: { id: string; name: string }): Promise<void> {
  await sql`INSERT INTO project (id, name) VALUES (${project.id}, ${project.name})`;
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

/** Changes a project's name and settings. */
export async function updateProject(
  sql: Sql,
  { id, name, publicLookup }: Pick<ProjectRow, 'id' | 'name' | 'publicLookup'>,
): Promise<void> {
  await sql`UPDATE project SET name = ${name}, public_lookup = ${publicLookup} WHERE id = ${id}`;
}
