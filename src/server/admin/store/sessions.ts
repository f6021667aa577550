import type { Sql } from '../../database/connect.js';
import type { PersonRow } from './people.js';

/** A stored session. */
export type SessionRow = {
  id: string;
  /** Null if it is the operator's. */
  projectId: string | null;
  projectName: string | null;
  createdAt: Date;
  expiresAt: Date;
  /** Whose it is; null if the admin token or a link started it. */
  person: PersonRow | null;
  /** The condition of OIDC_OPERATORS that made the person an operator. */
  operatorRule: string | null;
};

/** A session as it is listed: who started it by which link, and when it was last used, to the minute. */
export type OpenSessionRow = SessionRow & { linkId: string | null; lastUsedAt: Date };

/** A session ends when it was not used for this long. */
const IDLE = '1 hour';

const isOpen = (sql: Sql) => sql`
  s.expires_at > clock_timestamp() AND s.last_used_at > clock_timestamp() - ${IDLE}::interval`;

const columns = (sql: Sql) => sql`
  s.id, s.project_id AS "projectId", p.name AS "projectName", s.created_at AS "createdAt", s.expires_at AS "expiresAt",
  s.operator_rule AS "operatorRule",
  CASE WHEN o.id IS NOT NULL THEN jsonb_build_object('id', o.id, 'name', o.name, 'email', o.email) END AS person`;

const tables = (sql: Sql) => sql`
  session s LEFT JOIN project p ON p.id = s.project_id LEFT JOIN person o ON o.id = s.person_id`;

/** A session to insert: of a project, of a person, or of the operator. */
export type NewSession = {
  projectId?: string;
  linkId?: string;
  personId?: string;
  operatorRule?: string | undefined;
  /** The `sid` of the ID token. */
  providerSession?: string | null;
};

/** Inserts a session that ends after `lifetimeMs`. */
export async function insertSession(
  tx: Sql,
  session: NewSession & { id: string; hash: Uint8Array; lifetimeMs: number },
): Promise<void> {
  const { projectId = null, linkId = null, personId = null } = session;
  const { operatorRule = null, providerSession = null } = session;
  await tx`
    INSERT INTO session (id, hash, project_id, link_id, person_id, operator_rule, provider_session, expires_at)
    VALUES (${session.id}, ${session.hash}, ${projectId}, ${linkId}, ${personId}, ${operatorRule}, ${providerSession},
            clock_timestamp() + ${session.lifetimeMs}::bigint * interval '1 millisecond')`;
}

/** Finds the session of a cookie, by its hashes, unless it has ended, and records its use to the minute. */
export async function useSession(sql: Sql, hashes: readonly Uint8Array[]): Promise<SessionRow | undefined> {
  const rows = await sql<(SessionRow & { isStale: boolean })[]>`
    SELECT ${columns(sql)}, s.last_used_at < clock_timestamp() - interval '1 minute' AS "isStale"
    FROM ${tables(sql)}
    WHERE s.hash IN ${sql(hashes.map((hash) => Buffer.from(hash)))} AND ${isOpen(sql)}`;
  const [row] = rows;
  if (row?.isStale) await sql`UPDATE session SET last_used_at = clock_timestamp() WHERE id = ${row.id}`;
  return row;
}

/**
 * Lists the sessions that have not ended, newest first, below an id: those of a project, with null the operator's, with
 * undefined all.
 */
export async function listSessions(
  sql: Sql,
  query: { projectId: string | null | undefined; before: string | undefined; limit: number },
): Promise<OpenSessionRow[]> {
  const { projectId, before, limit } = query;
  return sql<OpenSessionRow[]>`
    SELECT ${columns(sql)}, s.link_id AS "linkId", s.last_used_at AS "lastUsedAt"
    FROM ${tables(sql)}
    WHERE ${isOpen(sql)}
      ${projectId === undefined ? sql`` : projectId === null ? sql`AND s.project_id IS NULL` : sql`AND s.project_id = ${projectId}`}
      ${before === undefined ? sql`` : sql`AND s.id < ${before}`}
    ORDER BY s.id DESC LIMIT ${limit}`;
}

/** Ends one session. @returns its project, null if it was the operator's; undefined if it had ended before */
export async function deleteSession(sql: Sql, id: string): Promise<{ projectId: string | null } | undefined> {
  const rows = await sql<{ projectId: string | null; wasOpen: boolean }[]>`
    DELETE FROM session s WHERE s.id = ${id} RETURNING s.project_id AS "projectId", ${isOpen(sql)} AS "wasOpen"`;
  return rows.find(({ wasOpen }) => wasOpen);
}

/** Inserts a sign-in link that works for `lifetimeMs`. @returns when it stops working */
export async function insertSignInLink(
  tx: Sql,
  link: { id: string; hash: Uint8Array; projectId: string; lifetimeMs: number },
): Promise<Date> {
  const [row] = await tx<{ expiresAt: Date }[]>`
    INSERT INTO sign_in_link (id, hash, project_id, expires_at)
    VALUES (${link.id}, ${link.hash}, ${link.projectId},
            clock_timestamp() + ${link.lifetimeMs}::bigint * interval '1 millisecond')
    RETURNING expires_at AS "expiresAt"`;
  if (row === undefined) throw new Error('the link was not stored');
  return row.expiresAt;
}

/** Uses up a link. Returns undefined if there is none with this hash, also because it was used or has expired. */
export async function useSignInLink(
  tx: Sql,
  hash: Uint8Array,
): Promise<{ id: string; projectId: string } | undefined> {
  const rows = await tx<{ id: string; projectId: string; isUsable: boolean }[]>`
    DELETE FROM sign_in_link WHERE hash = ${Buffer.from(hash)}
    RETURNING id, project_id AS "projectId", expires_at > clock_timestamp() AS "isUsable"`;
  return rows.find(({ isUsable }) => isUsable);
}

/** Ends all sessions and links of a project; with null, the operator's sessions. */
export async function deleteSessionsOf(
  tx: Sql,
  projectId: string | null,
): Promise<{ sessions: number; links: number }> {
  const sessions = await tx`
    DELETE FROM session WHERE project_id IS NOT DISTINCT FROM ${projectId} RETURNING id`;
  const links = await tx`DELETE FROM sign_in_link WHERE project_id = ${projectId} RETURNING id`;
  return { sessions: sessions.length, links: links.length };
}

/** Deletes sessions and links that have ended. */
export async function pruneSessions(sql: Sql): Promise<void> {
  await sql`
    DELETE FROM session WHERE expires_at < clock_timestamp() OR last_used_at < clock_timestamp() - ${IDLE}::interval`;
  await sql`DELETE FROM sign_in_link WHERE expires_at < clock_timestamp()`;
}
