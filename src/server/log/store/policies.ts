import type { Pool, Sql } from '../../database/connect.js';

/** A witness in a policy; `kind` is a proto WitnessKind number. */
type PolicyWitness = { name: string; kind: number; required: boolean };

/** At least `threshold` of the witnesses `members` must vouch. */
export type Quorum = { threshold: number; members: string[] };

/** The witnesses that the batches of an environment need: those that are required, and each quorum. */
export type Policy = {
  environment: number;
  version: number;
  witnesses: PolicyWitness[];
  quorums: Quorum[];
  deadlineMs: number;
};

/** A policy and the time it was in force. `validTo` is null while it is. */
export type DatedPolicy = Policy & { validFrom: Date; validTo: Date | null };

/** The query of an environment's newest policy. */
export const newestPolicy = (sql: Sql, environment: number) => sql`
  SELECT environment, version, witnesses, quorums, deadline_ms AS "deadlineMs" FROM policy
  WHERE environment = ${environment} ORDER BY version DESC LIMIT 1`;

/** The error of an environment without a policy. */
export function noPolicy(environment: number): Error {
  return new Error(`environment ${environment} has no witness policy; start a worker once`);
}

/**
 * Lists all versions of all policies, oldest first. A version ends its deadline after the next one begins: batches
 * sealed under it have until then. The database's clock may have been set back in between.
 */
export async function listPolicies(sql: Sql): Promise<DatedPolicy[]> {
  return sql<DatedPolicy[]>`
    SELECT environment, version, witnesses, quorums, deadline_ms AS "deadlineMs", created_at AS "validFrom",
           CASE WHEN next_at IS NOT NULL
                THEN greatest(next_at, created_at) + deadline_ms * interval '1 millisecond' END AS "validTo"
    FROM (SELECT policy.*, lead(created_at) OVER (PARTITION BY environment ORDER BY version) AS next_at FROM policy) p
    ORDER BY environment, version`;
}

/** Makes this the environment's newest policy. Adds a version unless the newest is equal. */
export async function ensurePolicy(pool: Pool, policy: Omit<Policy, 'version'>): Promise<void> {
  await pool.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(hashtextextended('policy', ${policy.environment}))`;
    await tx`
      INSERT INTO policy (environment, version, witnesses, quorums, deadline_ms)
      SELECT ${policy.environment}, coalesce(max(version), 0) + 1, ${tx.json(policy.witnesses)},
             ${tx.json(policy.quorums)}, ${policy.deadlineMs}
      FROM policy WHERE environment = ${policy.environment}
      HAVING NOT EXISTS (
        SELECT FROM policy newest
        WHERE newest.environment = ${policy.environment} AND newest.version = max(policy.version)
          AND newest.witnesses = ${tx.json(policy.witnesses)} AND newest.quorums = ${tx.json(policy.quorums)}
          AND newest.deadline_ms = ${policy.deadlineMs})`;
  });
}
