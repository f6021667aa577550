import type { Sql } from '../../database/connect.js';
import type { ApiKeyLimits } from './api-keys.js';
import { namedPerson, type PersonRow } from './people.js';

/** A stored trust rule. `environment` is a proto Environment number; `audience` is empty for the service's own address. */
export type TrustRuleRow = ApiKeyLimits & {
  /** `tru_` and a ULID. */
  id: string;
  projectId: string;
  environment: number;
  issuer: string;
  audience: string;
  /** Patterns by the names of claims. */
  conditions: Record<string, string>;
  scopes: string[];
  recordedClaims: string[];
  reusableTokens: boolean;
  createdAt: Date;
  removedAt: Date | null;
  /** Who has made it; null: the holder of the admin token or of a sign-in link. */
  createdBy: PersonRow | null;
};

/** A trust rule to insert. */
export type NewTrustRule = Omit<TrustRuleRow, 'createdAt' | 'removedAt' | 'createdBy'> & {
  /** The id of a person. */
  createdBy?: string | undefined;
};

const columns = (sql: Sql) => sql`
  id, project_id AS "projectId", environment, issuer, audience, conditions, scopes,
  submissions_per_second AS "submissionsPerSecond", submissions_per_hour AS "submissionsPerHour",
  submissions_per_day AS "submissionsPerDay", reads_per_second AS "readsPerSecond",
  recorded_claims AS "recordedClaims", reusable_tokens AS "reusableTokens",
  created_at AS "createdAt", removed_at AS "removedAt",
  ${namedPerson(sql, sql`trust_rule.created_by`)} AS "createdBy"`;

/** Inserts a rule. */
export async function insertTrustRule(tx: Sql, rule: NewTrustRule): Promise<void> {
  await tx`
    INSERT INTO trust_rule (id, project_id, environment, issuer, audience, conditions, scopes, submissions_per_second,
                            submissions_per_hour, submissions_per_day, reads_per_second, recorded_claims, reusable_tokens,
                            created_by)
    VALUES (${rule.id}, ${rule.projectId}, ${rule.environment}, ${rule.issuer}, ${rule.audience},
            ${JSON.stringify(rule.conditions)}::text::jsonb, ${rule.scopes}, ${rule.submissionsPerSecond},
            ${rule.submissionsPerHour}, ${rule.submissionsPerDay}, ${rule.readsPerSecond}, ${rule.recordedClaims},
            ${rule.reusableTokens}, ${rule.createdBy ?? null})`;
}

/** Finds a rule by id, removed or not. */
export async function findTrustRule(sql: Sql, id: string): Promise<TrustRuleRow | undefined> {
  const rows = await sql<TrustRuleRow[]>`SELECT ${columns(sql)} FROM trust_rule WHERE id = ${id}`;
  return rows[0];
}

/** Removes a rule permanently. @returns whether this call did; removing again changes nothing */
export async function removeTrustRule(tx: Sql, id: string): Promise<boolean> {
  const rows = await tx`
    UPDATE trust_rule SET removed_at = clock_timestamp() WHERE id = ${id} AND removed_at IS NULL RETURNING id`;
  return rows.length > 0;
}

/** Lists the ids of the rules of a project that a person has made and that are in force. */
export async function listRulesOf(sql: Sql, personId: string, projectId: string): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM trust_rule
    WHERE created_by = ${personId} AND project_id = ${projectId} AND removed_at IS NULL ORDER BY id`;
  return rows.map(({ id }) => id);
}

/** Counts the rules of a project that are in force. */
export async function countTrustRules(sql: Sql, projectId: string): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    SELECT count(*)::int AS count FROM trust_rule WHERE project_id = ${projectId} AND removed_at IS NULL`;
  return row?.count ?? 0;
}

/** Lists the rules in force of one project or all, newest first, below an id. */
export async function listTrustRules(
  sql: Sql,
  query: { projectId: string | undefined; before: string | undefined; limit: number },
): Promise<TrustRuleRow[]> {
  return sql<TrustRuleRow[]>`
    SELECT ${columns(sql)} FROM trust_rule
    WHERE removed_at IS NULL ${query.projectId === undefined ? sql`` : sql`AND project_id = ${query.projectId}`}
      ${query.before === undefined ? sql`` : sql`AND id < ${query.before}`}
    ORDER BY id DESC LIMIT ${query.limit}`;
}

/** What the rules must be of; an undefined member matches all. */
export type RuleQuery = { issuer: string; projectId: string | undefined; environment: number | undefined };

/** Whether a rule in force names an issuer. */
export async function isIssuerNamed(sql: Sql, query: RuleQuery): Promise<boolean> {
  const rows = await sql`SELECT FROM trust_rule WHERE ${isOf(sql, query)} LIMIT 1`;
  return rows.length > 0;
}

/** Finds the rules in force that name an issuer, the oldest first, at most `limit`. */
export async function findRulesOfIssuer(sql: Sql, query: RuleQuery, limit: number): Promise<TrustRuleRow[]> {
  return sql<TrustRuleRow[]>`
    SELECT ${columns(sql)} FROM trust_rule WHERE ${isOf(sql, query)} ORDER BY id LIMIT ${limit}`;
}

const isOf = (sql: Sql, { issuer, projectId, environment }: RuleQuery) => sql`
  issuer = ${issuer} AND removed_at IS NULL
    ${projectId === undefined ? sql`` : sql`AND project_id = ${projectId}`}
    ${environment === undefined ? sql`` : sql`AND environment = ${environment}`}`;
