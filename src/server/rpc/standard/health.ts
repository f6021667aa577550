import { setTimeout as delay } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect';
import {
  type Health,
  type HealthCheckResponse,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../../../gen/grpc/health/v1/health_pb.js';

type HealthDeps = {
  /** Full names of the services; all have the same status. */
  services: readonly string[];
  /** Whether `/readyz` reports this process as ready. */
  isReady: () => Promise<boolean>;
  /** Monotonic milliseconds. */
  monotonicMs: () => number;
};

/** The status is checked at most this often. */
const CHECK_MS = 500;
/** The name of the server as a whole. */
const SERVER = '';

/**
 * Implements `grpc.health.v1.Health`. While the server drains, every status is NOT_SERVING; watches send it and end.
 */
export function healthService(deps: HealthDeps): ServiceImpl<typeof Health> {
  const names = [SERVER, ...deps.services];
  const readReadiness = cachedReadiness(deps);
  // The signal of a call that is being answered aborts when the server begins to close.
  const statusNow = async (signal: AbortSignal) =>
    !signal.aborted && (await readReadiness()) ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  return {
    check: async ({ service }, { signal }) => {
      if (!names.includes(service)) {
        throw new ConnectError(`no service is called ${JSON.stringify(service)}`, Code.NotFound);
      }
      return { status: await statusNow(signal) };
    },
    list: async (_request, { signal }) => {
      const status = await statusNow(signal);
      return { statuses: Object.fromEntries(names.map((name) => [name, { status }])) };
    },
    watch: ({ service }, { signal }) => {
      const isKnown = names.includes(service);
      return watchStatus(
        isKnown ? () => statusNow(signal) : async () => ServingStatus.SERVICE_UNKNOWN,
        signal,
      );
    },
  };
}

/** Yields the status now and whenever it changes, until the signal aborts. */
async function* watchStatus(
  read: () => Promise<ServingStatus>,
  signal: AbortSignal,
): AsyncIterable<HealthCheckResponse> {
  let sent: ServingStatus | undefined;
  for (let last = false; !last; ) {
    last = signal.aborted;
    const status = await read();
    if (status !== sent) yield create(HealthCheckResponseSchema, { status });
    sent = status;
    if (!last) await delay(CHECK_MS, undefined, { signal }).catch(() => {});
  }
}

/** Caches the readiness for `CHECK_MS`. */
function cachedReadiness({ isReady, monotonicMs }: HealthDeps): () => Promise<boolean> {
  let latest = Promise.resolve(false);
  let latestMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (monotonicMs() - latestMs < CHECK_MS) return latest;
    latestMs = monotonicMs();
    latest = isReady();
    return latest;
  };
}
