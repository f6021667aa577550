import type { Sql } from '../../database/connect.js';

/** A person as he is named. */
export type PersonRow = {
  /** `per_` and a ULID. */
  id: string;
  name: string;
  /** Empty if the provider names none. */
  email: string;
};

/** A person's role in a project; `projectId` is null of an operator. `role` is a proto Role number. */
export type MembershipRow = { projectId: string | null; projectName: string | null; role: number };

/** The same as it is listed. */
export type MemberRow = MembershipRow & {
  person: PersonRow;
  /** The role by invitation; null without one. */
  invitedAs: number | null;
  /** The rules that give a role. */
  ruleIds: string[];
  signedInAt: Date;
};

/** The name of the person `o`, which is null where there is none, as JSON. */
export const personColumn = (sql: Sql) => sql`
  CASE WHEN o.id IS NOT NULL THEN jsonb_build_object('id', o.id, 'name', o.name, 'email', o.email) END`;

/** The name of the person `id` as JSON; null without one. */
export const namedPerson = (sql: Sql, id: ReturnType<Sql>) => sql`
  (SELECT jsonb_build_object('id', o.id, 'name', o.name, 'email', o.email) FROM person o WHERE o.id = ${id})`;

/** Records that somebody has signed in, as the provider names him now. @returns his row, whose id stays the same */
export async function recordPerson(
  tx: Sql,
  person: PersonRow & { issuer: string; subject: string },
): Promise<PersonRow> {
  const [row] = await tx<PersonRow[]>`
    INSERT INTO person (id, issuer, subject, name, email)
    VALUES (${person.id}, ${person.issuer}, ${person.subject}, ${person.name}, ${person.email})
    ON CONFLICT (issuer, subject) DO UPDATE
      SET name = excluded.name, email = excluded.email, signed_in_at = clock_timestamp()
    RETURNING id, name, email`;
  if (row === undefined) throw new Error('the person was not stored');
  return row;
}

/** The roles of the person `personId`, the highest of each project, as JSON. */
export const membershipsColumn = (sql: Sql, personId: ReturnType<Sql>) => sql`
  (SELECT coalesce(jsonb_agg(jsonb_build_object('projectId', m.project_id, 'projectName', m.name, 'role', m.role)
                             ORDER BY m.name, m.project_id), '[]')
   FROM (SELECT h.project_id, q.name, max(h.role) AS role
         FROM membership h LEFT JOIN project q ON q.id = h.project_id
         WHERE h.person_id = ${personId} GROUP BY h.project_id, q.name) m)`;

/** Lists people with their roles in one project or all, below a person and project. */
export async function listMembers(
  sql: Sql,
  query: { projectId: string | undefined; before: readonly string[] | undefined; limit: number },
): Promise<MemberRow[]> {
  const { projectId, before } = query;
  const [personId = '', inProject = ''] = before ?? [];
  return sql<MemberRow[]>`
    SELECT ${memberColumns(sql)}
    FROM ${memberTables(sql)}
    WHERE true ${projectId === undefined ? sql`` : sql`AND m.project_id = ${projectId}`}
      ${before === undefined ? sql`` : sql`AND (m.person_id, coalesce(m.project_id, '')) < (${personId}, ${inProject})`}
    GROUP BY o.id, m.project_id, q.name
    ORDER BY o.id DESC, coalesce(m.project_id, '') DESC LIMIT ${query.limit}`;
}

/** Finds a person's role in a project; with null, as an operator. */
export async function findMember(
  sql: Sql,
  personId: string,
  projectId: string | null,
): Promise<MemberRow | undefined> {
  const rows = await sql<MemberRow[]>`
    SELECT ${memberColumns(sql)} FROM ${memberTables(sql)}
    WHERE m.person_id = ${personId} AND m.project_id IS NOT DISTINCT FROM ${projectId}
    GROUP BY o.id, m.project_id, q.name`;
  return rows[0];
}

const memberColumns = (sql: Sql) => sql`
  ${personColumn(sql)} AS person, m.project_id AS "projectId", q.name AS "projectName", max(m.role) AS role,
  max(m.role) FILTER (WHERE m.rule_id IS NULL) AS "invitedAs",
  array_remove(array_agg(m.rule_id ORDER BY m.rule_id), NULL) AS "ruleIds", o.signed_in_at AS "signedInAt"`;

const memberTables = (sql: Sql) => sql`
  membership m JOIN person o ON o.id = m.person_id LEFT JOIN project q ON q.id = m.project_id`;

/** Gives a person a role by invitation, in place of the one that he has by another. */
export async function setInvitedRole(
  tx: Sql,
  { personId, projectId, role }: { personId: string; projectId: string | null; role: number },
): Promise<void> {
  await tx`
    INSERT INTO membership (person_id, project_id, role) VALUES (${personId}, ${projectId}, ${role})
    ON CONFLICT (person_id, project_id, rule_id) DO UPDATE SET role = excluded.role`;
}

/** Takes all roles of a person in a project; with null, as an operator. */
export async function deleteMember(tx: Sql, personId: string, projectId: string | null): Promise<void> {
  await tx`
    DELETE FROM membership WHERE person_id = ${personId} AND project_id IS NOT DISTINCT FROM ${projectId}`;
}

/** Gives a person the roles of these rules, and takes those of all others. */
export async function setRolesByRules(tx: Sql, personId: string, ruleIds: string[]): Promise<void> {
  await tx`
    DELETE FROM membership
    WHERE person_id = ${personId} AND rule_id IS NOT NULL AND rule_id <> ALL(${ruleIds}::text[])`;
  await tx`
    INSERT INTO membership (person_id, project_id, rule_id, role)
    SELECT ${personId}, project_id, id, role FROM role_rule WHERE id = ANY(${ruleIds}::text[])
    ON CONFLICT DO NOTHING`;
}

/** Whether a person has any role. */
export async function hasRole(sql: Sql, personId: string): Promise<boolean> {
  return (await sql`SELECT FROM membership WHERE person_id = ${personId} LIMIT 1`).length > 0;
}
