import type { Sql } from '../../database/connect.js';
import { type PersonRow, personColumn } from './people.js';

/** A stored role rule. `projectId` is null of one for operators; `role` is a proto Role number. */
export type RoleRuleRow = {
  /** `rol_` and a ULID. */
  id: string;
  projectId: string | null;
  role: number;
  /** Patterns by the names of claims. */
  conditions: Record<string, string>;
  createdBy: PersonRow | null;
  createdAt: Date;
};

const columns = (sql: Sql) => sql`
  r.id, r.project_id AS "projectId", r.role, r.conditions, ${personColumn(sql)} AS "createdBy",
  r.created_at AS "createdAt"`;

const tables = (sql: Sql) => sql`role_rule r LEFT JOIN person o ON o.id = r.created_by`;

/** Inserts a rule. */
export async function insertRoleRule(
  tx: Sql,
  rule: Pick<RoleRuleRow, 'id' | 'projectId' | 'role' | 'conditions'> & { createdBy: string | undefined },
): Promise<RoleRuleRow> {
  const { id, projectId, role, conditions, createdBy = null } = rule;
  await tx`
    INSERT INTO role_rule (id, project_id, role, conditions, created_by)
    VALUES (${id}, ${projectId}, ${role}, ${JSON.stringify(conditions)}::text::jsonb, ${createdBy})`;
  const [row] = await tx<RoleRuleRow[]>`SELECT ${columns(tx)} FROM ${tables(tx)} WHERE r.id = ${id}`;
  if (row === undefined) throw new Error('the rule was not stored');
  return row;
}

/** Reads every rule, for somebody who signs in. */
export async function readRoleRules(sql: Sql): Promise<Pick<RoleRuleRow, 'id' | 'conditions'>[]> {
  return sql<Pick<RoleRuleRow, 'id' | 'conditions'>[]>`SELECT id, conditions FROM role_rule`;
}

/** Counts the rules of a project; with null, those for operators. */
export async function countRoleRules(sql: Sql, projectId: string | null): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    SELECT count(*)::int AS count FROM role_rule WHERE project_id IS NOT DISTINCT FROM ${projectId}`;
  return row?.count ?? 0;
}

/** Lists the rules of one project or all, newest first, below an id. */
export async function listRoleRules(
  sql: Sql,
  query: { projectId: string | undefined; before: string | undefined; limit: number },
): Promise<RoleRuleRow[]> {
  return sql<RoleRuleRow[]>`
    SELECT ${columns(sql)} FROM ${tables(sql)}
    WHERE true ${query.projectId === undefined ? sql`` : sql`AND r.project_id = ${query.projectId}`}
      ${query.before === undefined ? sql`` : sql`AND r.id < ${query.before}`}
    ORDER BY r.id DESC LIMIT ${query.limit}`;
}

/** Deletes a rule of a project, with null one for operators, and the roles that it gave. @returns whether there was one */
export async function deleteRoleRule(tx: Sql, id: string, projectId: string | null): Promise<boolean> {
  const rows = await tx`
    DELETE FROM role_rule WHERE id = ${id} AND project_id IS NOT DISTINCT FROM ${projectId} RETURNING id`;
  return rows.length > 0;
}
