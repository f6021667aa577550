import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  HealthSchema,
  type InfoService,
  type Me,
  MeSchema,
  type RateLimitSchema,
} from '../../../gen/attestation/v1/service_pb.js';
import { findApiKey } from '../admin/store/api-keys.js';
import { findExchangedKey } from '../admin/store/exchanged-keys.js';
import { readUsage, type WindowUsage } from '../admin/store/usage.js';
import { lastDay, lastDays, startOf, sumUsage } from '../admin/usage-spans.js';
import { type Call, getPrincipal, type Handlers } from '../core/call.js';
import { unavailable } from '../core/errors.js';
import { credentialId, UNIVERSAL_SCOPE } from '../core/principal.js';
import { submissionWindowStates, type WindowUse } from '../core/rate-window.js';
import type { Pool } from '../database/connect.js';
import type { TrustRootsReader } from './trust-roots.js';

/** `problem`: why an environment is not operational. Returns undefined if it is. */
type InfoDeps = {
  pool: Pool;
  trustRoots: TrustRootsReader;
  problem: (environment: number) => Promise<string | undefined>;
  /** Why nothing is stored now, or proofs are late. Returns undefined if neither is so. */
  findDegradation: () => Promise<string | undefined>;
  clock: () => number;
};

/** The handlers of InfoService. */
export function infoHandlers(deps: InfoDeps): Handlers<typeof InfoService> {
  return {
    getTrustRoots: () => deps.trustRoots.read(),
    getHealth: async (_request, call) => {
      const problem = await deps.problem(getPrincipal(call).environment);
      if (problem !== undefined) throw unavailable(problem, 5);
      const reason = await deps.findDegradation();
      return create(HealthSchema, reason === undefined ? { status: 'ok' } : { status: 'degraded', reason });
    },
    getMe: (_request, call) => readMe(deps, call),
  };
}

const DAYS_SHOWN = 30;

async function readMe({ pool, clock }: InfoDeps, call: Call): Promise<Me> {
  const principal = getPrincipal(call);
  const nowSecond = Math.floor(clock() / 1000);
  const [day, days] = [lastDay(nowSecond), lastDays(DAYS_SHOWN, nowSecond)];
  const [key, usage] = await Promise.all([
    principal.exchanged === undefined
      ? findApiKey(pool, principal.id)
      : findExchangedKey(pool, principal.exchanged.keyId),
    readUsage(pool, { apiKeyId: principal.id }, [{ windowSeconds: 1, since: nowSecond }, day, days]),
  ]);
  if (key === undefined) throw new Error(`API key ${credentialId(principal)} is missing`);
  const last24h = sumUsage(usage, day);
  return create(MeSchema, {
    project: { id: key.projectId, name: key.projectName },
    apiKey: {
      id: key.id,
      prefix: key.prefix,
      last4: key.last4,
      environment: key.environment,
      createdAt: timestampFromDate(key.createdAt),
      ...('lastUsedAt' in key && key.lastUsedAt !== null
        ? { lastUsedAt: timestampFromDate(key.lastUsedAt) }
        : {}),
      ...(key.expiresAt === null ? {} : { expiresAt: timestampFromDate(key.expiresAt) }),
    },
    scopes: [...principal.scopes, UNIVERSAL_SCOPE].sort(),
    ...(principal.identity && { identity: principal.identity }),
    rateLimits: rateLimits(call, usage, nowSecond),
    usage: {
      submissionsLast24h: BigInt(last24h.submissions),
      readsLast24h: BigInt(last24h.reads),
      byDay: usage
        .filter(({ windowSeconds }) => windowSeconds === days.windowSeconds)
        .map(({ started, submissions, reads }) => ({
          date: new Date(started * 1000).toISOString().slice(0, 10),
          submissions: BigInt(submissions),
          reads: BigInt(reads),
        })),
    },
  });
}

/** The state of each of the key's windows. Reads have the values of this response's headers. */
function rateLimits(
  call: Call,
  usage: readonly WindowUsage[],
  nowSecond: number,
): MessageInitShape<typeof RateLimitSchema>[] {
  const principal = getPrincipal(call);
  const windows = [
    ...submissionWindowStates(principal, submissionsOf(usage, nowSecond), nowSecond),
    ...call.rateStates,
  ];
  return windows.map(({ bucket, windowSeconds, limit, remaining, resetAtMs }) => ({
    bucket,
    windowSeconds,
    limit: BigInt(limit),
    remaining: BigInt(remaining),
    resetAt: timestampFromMs(resetAtMs),
  }));
}

/** The submissions counted in the current windows. */
function submissionsOf(usage: readonly WindowUsage[], nowSecond: number): WindowUse {
  const inWindow = (seconds: number) =>
    usage.find(
      ({ windowSeconds, started }) => windowSeconds === seconds && started === startOf(seconds, nowSecond),
    )?.submissions ?? 0;
  return { second: nowSecond, nSecond: inWindow(1), nHour: inWindow(3_600), nDay: inWindow(86_400) };
}
