import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type GetUsageRequest,
  type Usage,
  UsageSchema,
  type UsageService,
  UsageWindow,
} from '../../../gen/attestation/admin/v1/usage_pb.js';
import type { Handlers } from '../core/call.js';
import type { Pool } from '../database/connect.js';
import { getApiKey } from './get-api-key.js';
import { getProject } from './projects.js';
import { readUsage, type UsageOwner } from './store/usage.js';
import { lastDay, startOf, sumUsage } from './usage-spans.js';

type UsageDeps = { pool: Pool; clock: () => number };

/** The handlers of UsageService. */
export function usageHandlers({ pool, clock }: UsageDeps): Handlers<typeof UsageService> {
  return {
    getUsage: async (request) => {
      const owner = await getOwner(pool, request);
      return readUsageMessage(pool, owner, request, Math.floor(clock() / 1000));
    },
  };
}

async function getOwner(pool: Pool, { projectId, apiKeyId }: GetUsageRequest): Promise<UsageOwner> {
  if (apiKeyId !== '') return { apiKeyId: (await getApiKey(pool, apiKeyId)).id };
  return { projectId: (await getProject(pool, projectId)).id };
}

async function readUsageMessage(
  pool: Pool,
  owner: UsageOwner,
  { window, start, end }: GetUsageRequest,
  nowSecond: number,
): Promise<Usage> {
  const day = lastDay(nowSecond);
  const windowSeconds = window === UsageWindow.HOUR ? 3600 : 86400;
  const since = startOf(windowSeconds, secondOf(start, 0));
  const before = secondOf(end, nowSecond + 1);
  const rows = await readUsage(pool, owner, [
    { windowSeconds, since: windowSeconds === day.windowSeconds ? Math.min(since, day.since) : since },
    ...(windowSeconds === day.windowSeconds ? [] : [day]),
  ]);
  const shown = rows.filter(
    (row) => row.windowSeconds === windowSeconds && row.started >= since && row.started < before,
  );
  const total = sumUsage(shown, { windowSeconds, since });
  const last24h = sumUsage(rows, day);
  return create(UsageSchema, {
    submissions: BigInt(total.submissions),
    reads: BigInt(total.reads),
    submissionsLast24h: BigInt(last24h.submissions),
    readsLast24h: BigInt(last24h.reads),
    data: shown.map(({ started, submissions, reads }) => ({
      start: timestampFromMs(started * 1000),
      submissions: BigInt(submissions),
      reads: BigInt(reads),
    })),
  });
}

function secondOf(time: Timestamp | undefined, fallback: number): number {
  return time === undefined ? fallback : timestampMs(time) / 1000;
}
