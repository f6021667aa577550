import type { Sql } from '../../database/connect.js';
import { namedPerson, type PersonRow } from './people.js';

/** A stored API key, without the key itself. `environment` is a proto Environment number. */
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
  /** The key that replaced this one by rotation. */
  successorId: string | null;
  /** Who has made it; null: the holder of the admin token or of a sign-in link. */
  createdBy: PersonRow | null;
};

/** The limits of a key, in calls per window. */
export type ApiKeyLimits = Pick<
  ApiKeyRow,
  'submissionsPerSecond' | 'submissionsPerHour' | 'submissionsPerDay' | 'readsPerSecond'
>;

/** The default limits of a new key. */
export const DEFAULT_LIMITS: ApiKeyLimits = {
  submissionsPerSecond: 60,
  submissionsPerHour: 10_000,
  submissionsPerDay: 100_000,
  readsPerSecond: 600,
};

/** An API key to insert. */
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
  limits: ApiKeyLimits;
  /** The id of a person. */
  createdBy?: string | undefined;
};

const columns = (sql: Sql) => sql`
  k.id, k.project_id AS "projectId", p.name AS "projectName", k.environment, k.name, k.prefix, k.last4, k.scopes,
  k.submissions_per_second AS "submissionsPerSecond", k.submissions_per_hour AS "submissionsPerHour",
  k.submissions_per_day AS "submissionsPerDay", k.reads_per_second AS "readsPerSecond",
  k.created_at AS "createdAt", k.expires_at AS "expiresAt", k.revoked_at AS "revokedAt",
  k.last_used_at AS "lastUsedAt", k.successor_id AS "successorId",
  ${namedPerson(sql, sql`k.created_by`)} AS "createdBy"`;

/** A key that works, and the limits of its project: those that the operator set, or by default multiples of a key's. */
export type UsableApiKey = ApiKeyRow & { ceiling: ApiKeyLimits };

/** The default limits of a project are so many times the highest that a key or trust rule of it has which works. */
const DEFAULT_CEILING = 5;

/** Finds the key with one of these keyed hashes, unless revoked or expired. */
export async function findUsableApiKey(
  sql: Sql,
  hmacs: readonly Uint8Array[],
): Promise<UsableApiKey | undefined> {
  const rows = await sql<(ApiKeyRow & Ceilings)[]>`
    SELECT ${columns(sql)}, ${ceilingColumns(sql)}
    FROM api_key k JOIN project p ON p.id = k.project_id ${highestLimits(sql)}
    WHERE k.hmac IN ${sql(hmacs.map((hmac) => Buffer.from(hmac)))} AND k.revoked_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())`;
  return rows[0] && withCeiling(rows[0]);
}

/** The ceiling of the project `p` as columns. */
export type Ceilings = Record<'ceilingSecond' | 'ceilingHour' | 'ceilingDay' | 'ceilingReads', number>;

/** The columns of {@link Ceilings}, in a query with {@link highestLimits}. */
export const ceilingColumns = (sql: Sql) => {
  const ceiling = (limit: string) =>
    sql`coalesce(p.${sql(limit)}, ${DEFAULT_CEILING} * highest.${sql(limit)})::bigint`;
  return sql`${ceiling('submissions_per_second')} AS "ceilingSecond",
    ${ceiling('submissions_per_hour')} AS "ceilingHour", ${ceiling('submissions_per_day')} AS "ceilingDay",
    ${ceiling('reads_per_second')} AS "ceilingReads"`;
};

/** Joins the highest limits of the API keys and trust rules of the project `p` that work. */
export const highestLimits = (sql: Sql) => sql`
  CROSS JOIN LATERAL (
    SELECT max(o.submissions_per_second) AS submissions_per_second, max(o.submissions_per_hour) AS submissions_per_hour,
           max(o.submissions_per_day) AS submissions_per_day, max(o.reads_per_second) AS reads_per_second
    FROM (
      SELECT submissions_per_second, submissions_per_hour, submissions_per_day, reads_per_second FROM api_key
      WHERE project_id = p.id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
      UNION ALL
      SELECT submissions_per_second, submissions_per_hour, submissions_per_day, reads_per_second FROM trust_rule
      WHERE project_id = p.id AND removed_at IS NULL
    ) o
  ) highest`;

/** Takes the columns of the ceiling out of a row. */
export function withCeiling<T extends Ceilings>(
  found: T,
): Omit<T, keyof Ceilings> & { ceiling: ApiKeyLimits } {
  const { ceilingSecond, ceilingHour, ceilingDay, ceilingReads, ...row } = found;
  const ceiling = {
    submissionsPerSecond: ceilingSecond,
    submissionsPerHour: ceilingHour,
    submissionsPerDay: ceilingDay,
    readsPerSecond: ceilingReads,
  };
  return { ...row, ceiling };
}

/** Records the last use of a key, to the minute. */
export async function touchApiKey(sql: Sql, id: string): Promise<void> {
  await sql`
    UPDATE api_key SET last_used_at = clock_timestamp()
    WHERE id = ${id} AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')`;
}

/** Finds a key by id, revoked or not. */
export async function findApiKey(sql: Sql, id: string): Promise<ApiKeyRow | undefined> {
  const rows = await sql<ApiKeyRow[]>`
    SELECT ${columns(sql)} FROM api_key k JOIN project p ON p.id = k.project_id WHERE k.id = ${id}`;
  return rows[0];
}

/** Finds a key by id and locks it until the transaction ends. */
export async function lockApiKey(tx: Sql, id: string): Promise<ApiKeyRow | undefined> {
  const rows = await tx<ApiKeyRow[]>`
    SELECT ${columns(tx)} FROM api_key k JOIN project p ON p.id = k.project_id WHERE k.id = ${id} FOR UPDATE OF k`;
  return rows[0];
}

/** Inserts a key. */
export async function insertApiKey(sql: Sql, key: NewApiKey): Promise<void> {
  const { limits, createdBy = null } = key;
  await sql`
    INSERT INTO api_key (id, project_id, environment, name, prefix, last4, hmac, scopes, expires_at, created_by,
                         submissions_per_second, submissions_per_hour, submissions_per_day, reads_per_second)
    VALUES (${key.id}, ${key.projectId}, ${key.environment}, ${key.name}, ${key.prefix}, ${key.last4}, ${key.hmac},
            ${[...key.scopes]}, ${key.expiresAt}, ${createdBy}, ${limits.submissionsPerSecond}, ${limits.submissionsPerHour},
            ${limits.submissionsPerDay}, ${limits.readsPerSecond})`;
}

/** Lists keys of one project or all, of one person or all, newest first, below an id. */
export async function listApiKeys(
  sql: Sql,
  query: {
    projectId: string | undefined;
    createdBy: string | undefined;
    before: string | undefined;
    limit: number;
  },
): Promise<ApiKeyRow[]> {
  return sql<ApiKeyRow[]>`
    SELECT ${columns(sql)} FROM api_key k JOIN project p ON p.id = k.project_id
    WHERE true ${query.projectId === undefined ? sql`` : sql`AND k.project_id = ${query.projectId}`}
      ${query.createdBy === undefined ? sql`` : sql`AND k.created_by = ${query.createdBy}`}
      ${query.before === undefined ? sql`` : sql`AND k.id < ${query.before}`}
    ORDER BY k.id DESC LIMIT ${query.limit}`;
}

/** Lists the ids of the keys of a project that a person has made and that work now. */
export async function listUsableKeysOf(sql: Sql, personId: string, projectId: string): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM api_key
    WHERE created_by = ${personId} AND project_id = ${projectId} AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > clock_timestamp())
    ORDER BY id`;
  return rows.map(({ id }) => id);
}

/** Counts the keys of a project that work now. */
export async function countUsableApiKeys(sql: Sql, projectId: string): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    SELECT count(*)::int AS count FROM api_key
    WHERE project_id = ${projectId} AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > clock_timestamp())`;
  return row?.count ?? 0;
}

/** Revokes a key permanently. @returns whether this call did; revoking again changes nothing */
export async function revokeApiKey(sql: Sql, id: string): Promise<boolean> {
  const rows = await sql`
    UPDATE api_key SET revoked_at = clock_timestamp() WHERE id = ${id} AND revoked_at IS NULL RETURNING id`;
  return rows.length > 0;
}

/** The fields of a key that can be changed. */
export type ApiKeyChange = ApiKeyLimits & Pick<ApiKeyRow, 'name' | 'scopes' | 'expiresAt'>;

/** Updates a key's name, scopes, limits and expiry. */
export async function updateApiKey(sql: Sql, id: string, change: ApiKeyChange): Promise<void> {
  await sql`
    UPDATE api_key SET name = ${change.name}, scopes = ${change.scopes}, expires_at = ${change.expiresAt},
      submissions_per_second = ${change.submissionsPerSecond}, submissions_per_hour = ${change.submissionsPerHour},
      submissions_per_day = ${change.submissionsPerDay}, reads_per_second = ${change.readsPerSecond}
    WHERE id = ${id}`;
}

/** Records a key's successor. The key expires after `overlapMs`, or at its own expiry if that is earlier. */
export async function replaceApiKey(
  sql: Sql,
  id: string,
  { successorId, overlapMs }: { successorId: string; overlapMs: number },
): Promise<void> {
  await sql`
    UPDATE api_key SET successor_id = ${successorId},
      expires_at = least(expires_at, clock_timestamp() + ${overlapMs}::bigint * interval '1 millisecond')
    WHERE id = ${id}`;
}
