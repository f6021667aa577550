import { create } from '@bufbuild/protobuf';
import { timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Bucket } from '../../gen/attestation/options/v1/options_pb.js';
import { HealthSchema, type InfoService, type Me, MeSchema } from '../../gen/attestation/v1/service_pb.js';
import { type Call, getPrincipal, type Handlers } from '../call.js';
import { unavailable } from '../errors.js';
import { findApiKey } from '../store/api-keys.js';
import type { Pool } from '../store/connect.js';
import { findUse, readUsage } from '../store/rates.js';
import { readState, submissionStates } from './rate-windows.js';
import type { TrustRootsReader } from './trust-roots.js';

/** What the handlers work with. `problem` says why the service is not operational, or undefined when it is. */
export type InfoDeps = {
  pool: Pool;
  trustRoots: TrustRootsReader;
  problem: () => Promise<string | undefined>;
  clock: () => number;
};

/** The handlers of InfoService. */
export function infoHandlers(deps: InfoDeps): Handlers<typeof InfoService> {
  return {
    getTrustRoots: () => deps.trustRoots.read(),
    getHealth: async () => {
      const problem = await deps.problem();
      if (problem !== undefined) throw unavailable(problem, 5);
      return create(HealthSchema, { status: 'ok' });
    },
    getMe: (_request, call) => readMe(deps, call),
  };
}

async function readMe({ pool, clock }: InfoDeps, call: Call): Promise<Me> {
  const principal = getPrincipal(call);
  const [key, submissions, reads, usage] = await Promise.all([
    findApiKey(pool, principal.apiKeyId),
    findUse(pool, principal.apiKeyId, Bucket.SUBMISSIONS),
    findUse(pool, principal.apiKeyId, Bucket.READS),
    readUsage(pool, principal.apiKeyId),
  ]);
  if (key === undefined) throw new Error(`API key ${principal.apiKeyId} is missing`);
  const nowSecond = Math.floor(clock() / 1000);
  const windows = [
    ...submissionStates(principal, submissions, nowSecond),
    readState(principal, reads, nowSecond),
  ];
  return create(MeSchema, {
    project: { id: key.projectId, name: key.projectName },
    apiKey: {
      id: key.id,
      prefix: key.prefix,
      last4: key.last4,
      environment: key.environment,
      createdAt: timestampFromDate(key.createdAt),
      ...(key.lastUsedAt === null ? {} : { lastUsedAt: timestampFromDate(key.lastUsedAt) }),
    },
    scopes: [...principal.scopes],
    rateLimits: windows.map(({ bucket, windowSeconds, limit, remaining, resetAtMs }) => ({
      bucket,
      windowSeconds,
      limit: BigInt(limit),
      remaining: BigInt(remaining),
      resetAt: timestampFromMs(resetAtMs),
    })),
    usage: {
      submissionsLast24h: BigInt(usage.submissionsLast24h),
      readsLast24h: BigInt(usage.readsLast24h),
      byDay: usage.byDay.map(({ day, submissions: n, reads: r }) => ({
        date: day,
        submissions: BigInt(n),
        reads: BigInt(r),
      })),
    },
  });
}
