/** What must hold of a service's tables after any fault, once it has come to rest. Everything is recomputed from scratch. */
import type { Test } from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import { toHex } from '../../../src/proof/bytes/encoding.js';
import type { EvidenceSources } from '../../../src/proof/verify/evidence/evidence.js';
import type { Policy } from '../../../src/proof/verify/steps/policy-step.js';
import type { TrustedQuorum } from '../../../src/proof/verify/trust.js';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import { type LogCache, openLogCache } from '../../../src/server/logs/log-cache.js';
import { createBundleReader, statementOf } from '../../../src/server/rpc/attestations/bundles/bundles.js';
import { createTrustRootsReader } from '../../../src/server/rpc/trust-roots.js';
import type { Pool } from '../../../src/server/store/database/connect.js';
import { listLogs } from '../../../src/server/store/log/logs.js';
import type { SubmissionRow } from '../../../src/server/store/submissions/submissions.js';
import { listCoveringEvidence } from '../../../src/server/store/witnesses/witnesses.js';
import { inspectLog } from './consistent-log.js';

/** What a client was told by a 201, and under which idempotency key. Artifacts are unique to their requests. */
export type Acknowledged = {
  id: string;
  logIndex: number;
  leafSha256: string;
  artifactSha256: string;
  idempotencyKey?: string;
};

export type Consistency = {
  pool: Pool;
  acknowledged: readonly Acknowledged[];
  /** Folder of the checkpoint register. */
  register: string;
  /** Whether every leaf must be sealed and published, as after a drain. */
  sealed?: boolean;
  /** Submissions whose bundles were verified before, and need not be again; this call adds to it. */
  verified?: Set<string>;
  /** What evidence of some kinds is checked against. */
  sources?: EvidenceSources;
};

/** Fails the test with everything that does not hold. @returns how much was looked at */
export async function assertConsistent(
  t: Test,
  options: Consistency,
): Promise<{ leaves: number; batches: number; verified: number }> {
  const { pool, register, sealed = true, verified = new Set(), sources = {} } = options;
  const logCache = await openLogCache(pool);
  const problems: string[] = [];
  const seen = { leaves: 0, batches: 0, verified: 0 };
  const submissions = new Map<string, SubmissionRow>();
  for (const log of await listLogs(pool)) {
    const found = await inspectLog({ pool, logCache, register, sealed }, log);
    for (const leaf of found.leaves) submissions.set(leaf.id, leaf);
    problems.push(...found.problems);
    seen.leaves += found.leaves.length;
    seen.batches += found.batches.length;
  }
  problems.push(...findLost(options.acknowledged, submissions));
  problems.push(...(await findKeyProblems(pool, options.acknowledged)));
  const ready = [...submissions.values()].filter((row) => isReady(row) && !verified.has(row.id));
  problems.push(...(await verifyBundles(pool, logCache, ready, sources)));
  for (const { id } of ready) verified.add(id);
  t.same(problems.slice(0, 20), [], `${seen.leaves} leaves, ${seen.batches} batches are consistent`);
  return { ...seen, verified: ready.length };
}

/** Every acknowledged submission is there, at the index and with the leaf that its client was told. */
function findLost(
  acknowledged: readonly Acknowledged[],
  submissions: ReadonlyMap<string, SubmissionRow>,
): string[] {
  return acknowledged.flatMap(({ id, logIndex, leafSha256, artifactSha256 }) => {
    const row = submissions.get(id);
    if (row === undefined) return [`${id} was acknowledged and is lost`];
    const same = row.logIndex === logIndex && toHex(row.leafHash) === leafSha256;
    return same && toHex(row.artifactSha256) === artifactSha256 ? [] : [`${id} is not what was acknowledged`];
  });
}

/** No idempotency key made two resources: neither by what clients were told nor by what is stored. */
async function findKeyProblems(pool: Pool, acknowledged: readonly Acknowledged[]): Promise<string[]> {
  const keyed = acknowledged.filter(({ idempotencyKey }) => idempotencyKey !== undefined);
  const told = new Map<string | undefined, Set<string>>();
  for (const { id, idempotencyKey } of keyed)
    told.set(idempotencyKey, (told.get(idempotencyKey) ?? new Set()).add(id));
  const artifacts = keyed.map(({ artifactSha256 }) => artifactSha256);
  const twice = await pool<{ artifact: string; n: number }[]>`
    SELECT encode(artifact_sha256, 'hex') AS artifact, count(*) AS n FROM submission
    WHERE encode(artifact_sha256, 'hex') = ANY(${artifacts}) GROUP BY 1 HAVING count(*) <> 1`;
  const stored = await pool<{ key: string }[]>`
    SELECT key FROM idempotency_key
    WHERE resource_id NOT IN (SELECT id FROM submission UNION ALL SELECT id FROM webhook
                              UNION ALL SELECT id FROM webhook_delivery
                              UNION ALL SELECT id FROM project UNION ALL SELECT id FROM api_key)`;
  return [
    ...[...told]
      .filter(([, ids]) => ids.size > 1)
      .map(([key, ids]) => `${key} was answered with ${[...ids]}`),
    ...twice.map(({ artifact, n }) => `artifact ${artifact} of one request is there ${n} times`),
    ...stored.map(({ key }) => `the idempotency key ${key} stands for nothing`),
  ];
}

function isReady({ batchStatus }: SubmissionRow): boolean {
  return batchStatus === BatchStatus.WITNESSED || batchStatus === BatchStatus.PARTIAL;
}

/**
 * Every bundle that is ready verifies under the trust roots that the service publishes and the policy that its batch was
 * sealed under; of a partial one, as far as that policy was met.
 */
async function verifyBundles(
  pool: Pool,
  logCache: LogCache,
  submissions: readonly SubmissionRow[],
  sources: EvidenceSources,
): Promise<string[]> {
  const bundles = createBundleReader(pool, logCache, () => performance.now());
  const reader = createTrustRootsReader(pool, () => 'http://localhost/verify', Date.now);
  const trustRoots = JSON.parse(String((await reader.read()).json().bytes));
  const problems: string[] = [];
  for (const row of submissions) {
    const log = await logCache.getLog(row.logId);
    const evidence = await listCoveringEvidence(pool, [{ logId: log.id, treeSize: row.batchTreeSize ?? 0 }]);
    const landed = ['log', ...evidence.map(({ witness }) => witness)];
    const { required, quorums } = await readPolicy(pool, row);
    const isPartial = row.batchStatus === BatchStatus.PARTIAL;
    const verification = await verifyBundle((await bundles.read(row)).message(), {
      ...sources,
      trustRoots,
      artifactSha256: toHex(row.artifactSha256),
      environment: statementOf(row, log.environment).environment,
      now: new Date(),
      policy: isPartial
        ? { required: required.filter((name) => landed.includes(name)) }
        : { required, quorums },
    });
    if (verification.verdict !== 'verified') problems.push(`${row.id}: ${verification.summary}`);
  }
  return problems;
}

async function readPolicy(pool: Pool, { batchId }: SubmissionRow): Promise<Required<Policy>> {
  const [policy] = await pool<
    { witnesses: { name: string; required: boolean }[]; quorums: TrustedQuorum[] }[]
  >`
    SELECT p.witnesses, p.quorums
    FROM batch b JOIN log l ON l.id = b.log_id
    JOIN policy p ON p.environment = l.environment AND p.version = b.policy_version
    WHERE b.id = ${batchId}`;
  const { witnesses = [], quorums = [] } = policy ?? {};
  return { required: witnesses.filter(({ required }) => required).map(({ name }) => name), quorums };
}
