import type { Sql } from '../../database/connect.js';
import { type PersonRow, personColumn } from './people.js';

/** A stored invitation. `projectId` is null of one for operators; `role` is a proto Role number. */
export type InvitationRow = {
  /** `inv_` and a ULID. */
  id: string;
  projectId: string | null;
  role: number;
  /** Who may accept it; null: whoever has its link. */
  email: string | null;
  createdBy: PersonRow | null;
  createdAt: Date;
  expiresAt: Date;
};

const columns = (sql: Sql) => sql`
  i.id, i.project_id AS "projectId", i.role, i.email, ${personColumn(sql)} AS "createdBy",
  i.created_at AS "createdAt", i.expires_at AS "expiresAt"`;

/** Inserts an invitation that works for `lifetimeMs`. */
export async function insertInvitation(
  tx: Sql,
  invitation: Pick<InvitationRow, 'id' | 'projectId' | 'role' | 'email'> & {
    hash: Uint8Array;
    createdBy: string | undefined;
    lifetimeMs: number;
  },
): Promise<InvitationRow> {
  const { id, hash, projectId, role, email, createdBy = null, lifetimeMs } = invitation;
  await tx`
    INSERT INTO invitation (id, hash, project_id, role, email, created_by, expires_at)
    VALUES (${id}, ${hash}, ${projectId}, ${role}, ${email}, ${createdBy},
            clock_timestamp() + ${lifetimeMs}::bigint * interval '1 millisecond')`;
  const [row] = await tx<InvitationRow[]>`
    SELECT ${columns(tx)} FROM invitation i LEFT JOIN person o ON o.id = i.created_by WHERE i.id = ${id}`;
  if (row === undefined) throw new Error('the invitation was not stored');
  return row;
}

/** Uses up an invitation. Returns undefined if there is none with this hash, also because it was used or has expired. */
export async function useInvitation(
  tx: Sql,
  hash: Uint8Array,
): Promise<Pick<InvitationRow, 'id' | 'projectId' | 'role' | 'email'> | undefined> {
  const rows = await tx<(InvitationRow & { isUsable: boolean })[]>`
    DELETE FROM invitation WHERE hash = ${Buffer.from(hash)}
    RETURNING id, project_id AS "projectId", role, email, expires_at > clock_timestamp() AS "isUsable"`;
  return rows.find(({ isUsable }) => isUsable);
}

/** Lists the invitations that work of one project or all, newest first, below an id. */
export async function listInvitations(
  sql: Sql,
  query: { projectId: string | undefined; before: string | undefined; limit: number },
): Promise<InvitationRow[]> {
  return sql<InvitationRow[]>`
    SELECT ${columns(sql)} FROM invitation i LEFT JOIN person o ON o.id = i.created_by
    WHERE i.expires_at > clock_timestamp()
      ${query.projectId === undefined ? sql`` : sql`AND i.project_id = ${query.projectId}`}
      ${query.before === undefined ? sql`` : sql`AND i.id < ${query.before}`}
    ORDER BY i.id DESC LIMIT ${query.limit}`;
}

/** Deletes an invitation to a project; with null, to operators. @returns whether there was one */
export async function deleteInvitation(tx: Sql, id: string, projectId: string | null): Promise<boolean> {
  const rows = await tx`
    DELETE FROM invitation WHERE id = ${id} AND project_id IS NOT DISTINCT FROM ${projectId} RETURNING id`;
  return rows.length > 0;
}

/** Deletes invitations that have expired. */
export async function pruneInvitations(sql: Sql): Promise<void> {
  await sql`DELETE FROM invitation WHERE expires_at < clock_timestamp()`;
}
