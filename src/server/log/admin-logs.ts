import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type ListLogsRequest,
  ListLogsRequestSchema,
  ListLogsResponseSchema,
  type Log,
  LogSchema,
  type LogService,
} from '../../../gen/attestation/admin/v1/logs_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { Handlers } from '../core/call.js';
import type { Pool } from '../database/connect.js';
import { defaultOf } from '../rpc/list-page.js';
import { type LogSize, listLogSizes, listPublishedLogs, type PublishedLog } from './store/log-sizes.js';

const DEFAULT_SIZES = defaultOf(ListLogsRequestSchema, 'sizes');

/** The handlers of LogService. */
export function logHandlers({ pool }: { pool: Pool }): Handlers<typeof LogService> {
  return {
    listLogs: async ({ environment, sizes: most = DEFAULT_SIZES }: ListLogsRequest) => {
      const logs = await listPublishedLogs(pool, environmentsOf(environment));
      const published = logs.flatMap(({ id, treeSize }) => (treeSize === null ? [] : [{ id, treeSize }]));
      const each = Math.max(1, Math.floor(most / Math.max(1, published.length)));
      const sizes = await listLogSizes(pool, published, each);
      return create(ListLogsResponseSchema, {
        data: logs.map((log) =>
          logMessage(
            log,
            sizes.filter(({ logId }) => logId === log.id),
          ),
        ),
      });
    },
  };
}

function environmentsOf(environment: Environment): Environment[] {
  const { UNSPECIFIED, LIVE, TEST } = Environment;
  return environment === UNSPECIFIED ? [LIVE, TEST] : [environment];
}

function logMessage(log: PublishedLog, sizes: readonly LogSize[]): Log {
  return create(LogSchema, {
    origin: log.origin,
    environment: log.environment,
    lane: log.lane,
    epoch: log.epoch,
    createdAt: timestampFromDate(log.createdAt),
    ...(log.closedAt === null ? {} : { closedAt: timestampFromDate(log.closedAt) }),
    ...(log.frozenAt === null ? {} : { frozenAt: timestampFromDate(log.frozenAt) }),
    checkpoint: log.checkpoint ?? '',
    treeSize: BigInt(log.treeSize ?? 0),
    sizes: sizes.map(({ sealedAt, treeSize }) => ({
      sealedAt: timestampFromDate(sealedAt),
      treeSize: BigInt(treeSize),
    })),
  });
}
