import type { Sql } from '../../database/connect.js';
import { isOfId } from '../submissions/by-id.js';
import { readArtifactIndex } from './artifact-runs.js';

/** A submission that strangers find by its artifact. `environment` is a proto Environment number. */
type PublicSubmission = { id: string; projectId: string; environment: number; submittedAt: Date };

/** The result of a public look-up. `isComplete`: false if the search stopped before its end. */
type PublicMatches = { submissions: PublicSubmission[]; isComplete: boolean };

/** The most leaves that a look-up examines, per project and log. */
const MAX_CANDIDATES = 10_000;

type Row = PublicSubmission & { isMatch: boolean };

/**
 * Finds the newest witnessed and partial submissions of an artifact, of all projects with public look-up.
 *
 * @param isDefault whether projects without a setting of their own have it
 */
export async function findPublicArtifact(
  sql: Sql,
  artifactSha256: Uint8Array,
  { isDefault, limit }: { isDefault: boolean; limit: number },
): Promise<PublicMatches> {
  const rows = await sql<Row[]>`
    SELECT id, project_id AS "projectId", environment, submitted_at AS "submittedAt", is_match AS "isMatch"
    FROM find_public_artifact(${artifactSha256}, ${isDefault}, ${limit}, ${MAX_CANDIDATES})`;
  const logs = await readArtifactIndex(sql);
  const submissions = rows.filter(({ isMatch }) => isMatch);
  const isIndexed = logs.every(({ indexed, size }) => size - indexed <= MAX_CANDIDATES);
  return { submissions, isComplete: isIndexed && submissions.length === rows.length };
}

/** Whether any project has public look-up. */
export async function hasPublicLookup(sql: Sql, isDefault: boolean): Promise<boolean> {
  const [row] = await sql<{ found: boolean }[]>`
    SELECT EXISTS (SELECT FROM project WHERE coalesce(public_lookup, ${isDefault})) AS found`;
  return row?.found === true;
}

/** Whether a submission's project has public look-up. Takes the same two look-ups for a submission that does not exist. */
export async function isPublicSubmission(sql: Sql, id: string, isDefault: boolean): Promise<boolean> {
  const [row] = await sql<{ found: boolean }[]>`
    SELECT coalesce(public_lookup, ${isDefault}) AS found FROM project
    WHERE id = coalesce((SELECT s.project_id FROM named_submission s WHERE ${isOfId(sql, id)}), '')`;
  return row?.found === true;
}
