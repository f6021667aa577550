import type { Sql } from '../../database/connect.js';
import { type MembershipRow, membershipsColumn, type PersonRow, personColumn } from './people.js';

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

/** A session that is used, with the roles of its person, the highest of each project. */
export type UsedSessionRow = SessionRow & { memberships: MembershipRow[] };

/** A session as it is listed: who started it by which link, and when it was last used, to the minute. */
export type OpenSessionRow = SessionRow & { linkId: string | null; lastUsedAt: Date };

/** A session ends when it was not used for this long. */
const IDLE = '1 hour';

const isOpen = (sql: Sql) => sql`
  s.expires_at > clock_timestamp() AND s.last_used_at > clock_timestamp() - ${IDLE}::interval`;

const columns = (sql: Sql) => sql`
  s.id, s.project_id AS "projectId", p.name AS "projectName", s.created_at AS "createdAt", s.expires_at AS "expiresAt",
  s.operator_rule AS "operatorRule",
  ${personColumn(sql)} AS person`;

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
export async function useSession(
  sql: Sql,
  hashes: readonly Uint8Array[],
): Promise<UsedSessionRow | undefined> {
  const rows = await sql<(UsedSessionRow & { isStale: boolean })[]>`
    SELECT ${columns(sql)}, ${membershipsColumn(sql, sql`s.person_id`)} AS memberships, s.last_used_at < clock_timestamp() - interval '1 minute' AS "isStale"
    FROM ${tables(sql)}
    WHERE s.hash IN ${sql(hashes.map((hash) => Buffer.from(hash)))} AND ${isOpen(sql)}`;
  const [row] = rows;
  if (row?.isStale) await sql`UPDATE session SET last_used_at = clock_timestamp() WHERE id = ${row.id}`;
  return row;
}

/** Whose sessions: of a project, of the operators, of one person, or all. */
export type SessionOwner =
  | { kind: 'project'; projectId: string }
  | { kind: 'operators' }
  | { kind: 'person'; personId: string }
  | { kind: 'all' };

/** A project's sessions are by its links, and of people with a role in it who are no operators. */
const isOf = (sql: Sql, owner: SessionOwner) => {
  if (owner.kind === 'all') return sql`true`;
  if (owner.kind === 'person') return sql`s.person_id = ${owner.personId}`;
  if (owner.kind === 'operators')
    return sql`s.project_id IS NULL AND (s.person_id IS NULL OR ${isOperators(sql)})`;
  const { projectId } = owner;
  return sql`
    (s.project_id = ${projectId} OR NOT ${isOperators(sql)}
      AND EXISTS (SELECT FROM membership m WHERE m.person_id = s.person_id AND m.project_id = ${projectId}))`;
};

const isOperators = (sql: Sql) => sql`
  (s.operator_rule IS NOT NULL
    OR EXISTS (SELECT FROM membership m WHERE m.person_id = s.person_id AND m.project_id IS NULL))`;

/** Lists the sessions of an owner that have not ended, newest first, below an id. */
export async function listSessions(
  sql: Sql,
  query: { owner: SessionOwner; before: string | undefined; limit: number },
): Promise<OpenSessionRow[]> {
  const { owner, before, limit } = query;
  return sql<OpenSessionRow[]>`
    SELECT ${columns(sql)}, s.link_id AS "linkId", s.last_used_at AS "lastUsedAt"
    FROM ${tables(sql)}
    WHERE ${isOpen(sql)} AND ${isOf(sql, owner)}
      ${before === undefined ? sql`` : sql`AND s.id < ${before}`}
    ORDER BY s.id DESC LIMIT ${limit}`;
}

/** Ends one session if it is of the owner. @returns its project, null if it has none; undefined if it had ended before */
export async function deleteSession(
  sql: Sql,
  id: string,
  owner: SessionOwner,
): Promise<{ projectId: string | null } | undefined> {
  const rows = await sql<{ projectId: string | null; wasOpen: boolean }[]>`
    DELETE FROM session s WHERE s.id = ${id} AND ${isOf(sql, owner)}
    RETURNING s.project_id AS "projectId", ${isOpen(sql)} AS "wasOpen"`;
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

/** Ends all sessions of a project, and its links; with null, the operators' sessions. */
export async function deleteSessionsOf(
  tx: Sql,
  projectId: string | null,
): Promise<{ sessions: number; links: number }> {
  const owner: SessionOwner = projectId === null ? { kind: 'operators' } : { kind: 'project', projectId };
  const sessions = await tx`DELETE FROM session s WHERE ${isOf(tx, owner)} RETURNING s.id`;
  const links = await tx`DELETE FROM sign_in_link WHERE project_id = ${projectId} RETURNING id`;
  return { sessions: sessions.length, links: links.length };
}

/** Deletes sessions and links that have ended. */
export async function pruneSessions(sql: Sql): Promise<void> {
  await sql`
    DELETE FROM session WHERE expires_at < clock_timestamp() OR last_used_at < clock_timestamp() - ${IDLE}::interval`;
  await sql`DELETE FROM sign_in_link WHERE expires_at < clock_timestamp()`;
}
