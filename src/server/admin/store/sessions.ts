import type { Sql } from '../../database/connect.js';

/** A stored session. */
export type SessionRow = {
  id: string;
  /** Null if it is the operator's. */
  projectId: string | null;
  projectName: string | null;
  createdAt: Date;
  expiresAt: Date;
};

/** A session as it is listed: who started it by which link, and when it was last used, to the minute. */
export type OpenSessionRow = SessionRow & { linkId: string | null; lastUsedAt: Date };

/** A session ends when it was not used for this long. */
const IDLE = '1 hour';

const isOpen = (sql: Sql) => sql`
  s.expires_at > clock_timestamp() AND s.last_used_at > clock_timestamp() - ${IDLE}::interval`;

const columns = (sql: Sql) => sql`
  s.id, s.project_id AS "projectId", p.name AS "projectName", s.created_at AS "createdAt", s.expires_at AS "expiresAt"`;

/** Inserts a session of a project, or of the operator, that ends after `lifetimeMs`. */
export async function insertSession(
  tx: Sql,
  session: {
    id: string;
    hash: Uint8Array;
    projectId: string | null;
    linkId: string | null;
    lifetimeMs: number;
  },
): Promise<void> {
  await tx`
    INSERT INTO session (id, hash, project_id, link_id, expires_at)
    VALUES (${session.id}, ${session.hash}, ${session.projectId}, ${session.linkId},
            clock_timestamp() + ${session.lifetimeMs}::bigint * interval '1 millisecond')`;
}

/** Finds the session of a cookie unless it has ended, and records its use to the minute. */
export async function useSession(sql: Sql, hash: Uint8Array): Promise<SessionRow | undefined> {
  const rows = await sql<(SessionRow & { isStale: boolean })[]>`
    SELECT ${columns(sql)}, s.last_used_at < clock_timestamp() - interval '1 minute' AS "isStale"
    FROM session s LEFT JOIN project p ON p.id = s.project_id
    WHERE s.hash = ${Buffer.from(hash)} AND ${isOpen(sql)}`;
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
    FROM session s LEFT JOIN project p ON p.id = s.project_id
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
