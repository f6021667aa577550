import type { Sql } from './connect.js';

/** An API key as stored; the key itself is not. `environment` is a proto Environment number. */
export type ApiKeyRow = {
  id: string;
  projectId: string;
  projectName: string;
  environment: number;
  name: string;
  prefix: string;
  last4: string;
  scopes: string[];
  submissionsPerSecond: number;
  submissionsPerHour: number;
  submissionsPerDay: number;
  readsPerSecond: number;
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
};

/** What a new key is made of; limits left out are the table's defaults. */
export type NewApiKey = {
  id: string;
  projectId: string;
  environment: number;
  name: string;
  prefix: string;
  last4: string;
  hmac: Uint8Array;
  scopes: readonly string[];
  expiresAt: Date | null;
  limits?: {
    submissionsPerSecond: number;
    submissionsPerHour: number;
    submissionsPerDay: number;
    readsPerSecond: number;
  };
};

const columns = (sql: Sql) => sql`
  k.id, k.project_id AS "projectId", p.name AS "projectName", k.environment, k.name, k.prefix, k.last4, k.scopes,
  k.submissions_per_second AS "submissionsPerSecond", k.submissions_per_hour AS "submissionsPerHour",
  k.submissions_per_day AS "submissionsPerDay", k.reads_per_second AS "readsPerSecond",
  k.created_at AS "createdAt", k.expires_at AS "expiresAt", k.revoked_at AS "revokedAt",
  k.last_used_at AS "lastUsedAt"`;

/** The key with one of these keyed hashes that is neither revoked nor expired; also notes that it was used. */
export async function findUsableApiKey(
  sql: Sql,
  hmacs: readonly Uint8Array[],
): Promise<ApiKeyRow | undefined> {
  const rows = await sql<ApiKeyRow[]>`
    SELECT ${columns(sql)} FROM api_key k JOIN project p ON p.id = k.project_id
    WHERE k.hmac IN ${sql(hmacs.map((hmac) => Buffer.from(hmac)))} AND k.revoked_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())`;
  return rows[0];
}

/** Notes that a key was used, to the minute. */
export async function touchApiKey(sql: Sql, id: string): Promise<void> {
  await sql`
    UPDATE api_key SET last_used_at = clock_timestamp()
    WHERE id = ${id} AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')`;
}

/** One key by id, revoked or not. */
export async function findApiKey(sql: Sql, id: string): Promise<ApiKeyRow | undefined> {
  const rows = await sql<ApiKeyRow[]>`
    SELECT ${columns(sql)} FROM api_key k JOIN project p ON p.id = k.project_id WHERE k.id = ${id}`;
  return rows[0];
}

/** Adds a key. */
export async function insertApiKey(sql: Sql, key: NewApiKey): Promise<void> {
  const limits = key.limits ?? {
    submissionsPerSecond: 60,
    submissionsPerHour: 10_000,
    submissionsPerDay: 100_000,
    readsPerSecond: 600,
  };
  await sql`
    INSERT INTO api_key (id, project_id, environment, name, prefix, last4, hmac, scopes, expires_at,
                         submissions_per_second, submissions_per_hour, submissions_per_day, reads_per_second)
    VALUES (${key.id}, ${key.projectId}, ${key.environment}, ${key.name}, ${key.prefix}, ${key.last4}, ${key.hmac},
            ${[...key.scopes]}, ${key.expiresAt}, ${limits.submissionsPerSecond}, ${limits.submissionsPerHour},
            ${limits.submissionsPerDay}, ${limits.readsPerSecond})`;
}

/** Keys, newest first, of one project or all, below an id. */
export async function listApiKeys(
  sql: Sql,
  query: { projectId: string | undefined; before: string | undefined; limit: number },
): Promise<ApiKeyRow[]> {
  return sql<ApiKeyRow[]>`
    SELECT ${columns(sql)} FROM api_key k JOIN project p ON p.id = k.project_id
    WHERE true ${query.projectId === undefined ? sql`` : sql`AND k.project_id = ${query.projectId}`}
      ${query.before === undefined ? sql`` : sql`AND k.id < ${query.before}`}
    ORDER BY k.id DESC LIMIT ${query.limit}`;
}

/** Revokes a key for good. @returns whether there is such a key; revoking again changes nothing */
export async function revokeApiKey(sql: Sql, id: string): Promise<boolean> {
  const rows = await sql`
    UPDATE api_key SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = ${id} RETURNING id`;
  return rows.length > 0;
}

/** A project, which owns keys and submissions. */
export type ProjectRow = { id: string; name: string; createdAt: Date };

/** Adds a project. */
export async function insertProject(sql: Sql, project: { id: string; name: string }): Promise<void> {
  await sql`INSERT INTO project (id, name) VALUES (${project.id}, ${project.name})`;
}

/** Projects, oldest first. */
export async function listProjects(sql: Sql, limit: number): Promise<ProjectRow[]> {
  return sql<
    ProjectRow[]
  >`SELECT id, name, created_at AS "createdAt" FROM project ORDER BY id LIMIT ${limit}`;
}
