/** What must hold of a service's tables after any fault, once it has come to rest. Everything is recomputed from scratch. */
import type { Test } from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import type { RegisterConfig } from '../../../src/config/checkpoint-register.js';
import { toHex } from '../../../src/proof/bytes/encoding.js';
import type { EvidenceSources } from '../../../src/proof/verify/evidence/evidence.js';
import { readBundle } from '../../../src/proof/verify/read/read-bundle.js';
import type { Policy } from '../../../src/proof/verify/steps/policy-step.js';
import type { TrustedQuorum } from '../../../src/proof/verify/trust.js';
import { createBundleVerifier } from '../../../src/proof/verify/verify.js';
import { createBundleReader, statementOf } from '../../../src/server/attestations/bundles/bundles.js';
import type { SubmissionRow } from '../../../src/server/attestations/submissions/submissions.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { type LogCache, openLogCache } from '../../../src/server/log/log-cache.js';
import { listLogs } from '../../../src/server/log/store/logs.js';
import { createTrustRootsReader } from '../../../src/server/public/trust-roots.js';
import { listCoveringEvidence } from '../../../src/server/witnessing/store/witnesses.js';
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
  register: RegisterConfig;
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
  const bundles = createBundleReader({ pool, logCache });
  const reader = createTrustRootsReader(pool, () => 'http://localhost/verify', Date.now);
  const trustRoots = JSON.parse(String((await reader.read()).json().bytes));
  const problems: string[] = [];
  const policies = new Map<string | null, Policy>();
  // One for all bundles of a policy: it checks what they share once.
  const verifiers = new Map<string, ReturnType<typeof createBundleVerifier>>();
  for (const row of submissions) {
    const { environment } = statementOf(row, (await logCache.getLog(row.logId)).environment);
    const policy = policies.get(row.batchId) ?? (await findPolicy(pool, row));
    policies.set(row.batchId, policy);
    const key = JSON.stringify([environment, policy]);
    const verify =
      verifiers.get(key) ??
      createBundleVerifier({ ...sources, trustRoots, environment, now: new Date(), policy });
    verifiers.set(key, verify);
    const bundle = readBundle((await bundles.read(row)).message());
    const { verdict, summary } = await verify(bundle, { artifactSha256: toHex(row.artifactSha256) });
    // Without the statement nothing says what the leaf is of.
    const wanted = row.statementErasedAt === null ? 'verified' : 'could_not_check';
    if (verdict !== wanted) problems.push(`${row.id}: ${summary}`);
  }
  return problems;
}

/** What the bundles of a batch must meet; of a partial batch as far as that was met. */
async function findPolicy(pool: Pool, row: SubmissionRow): Promise<Policy> {
  const { required, quorums } = await readPolicy(pool, row);
  if (row.batchStatus !== BatchStatus.PARTIAL) return { required, quorums };
  const { logId, batchTreeSize: treeSize } = row;
  const evidence = await listCoveringEvidence(pool, [{ logId, treeSize: treeSize ?? 0 }]);
  const landed = ['log', ...evidence.map(({ witness }) => witness)];
  return { required: required.filter((name) => landed.includes(name)) };
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
