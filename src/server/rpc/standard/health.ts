import { setTimeout as delay } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from '@connectrpc/connect';
import {
  Health,
  type HealthCheckRequest,
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
 * Serves `grpc.health.v1.Health` without authentication. While the server drains, every status is NOT_SERVING; watches
 * send it and end.
 */
export function healthRoutes(deps: HealthDeps): (router: ConnectRouter) => void {
  const names = [SERVER, ...deps.services];
  const readReadiness = cachedReadiness(deps);
  /** The context's signal aborts when the server starts to drain. */
  const statusNow = async ({ signal }: HandlerContext) =>
    !signal.aborted && (await readReadiness()) ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  return (router) => {
    router.service(Health, {
      async check({ service }, context) {
        if (!names.includes(service)) {
          throw new ConnectError(`no service is called ${JSON.stringify(service)}`, Code.NotFound);
        }
        return { status: await statusNow(context) };
      },
      async list(_request, context) {
        const status = await statusNow(context);
        return { statuses: Object.fromEntries(names.map((name) => [name, { status }])) };
      },
      watch({ service }: HealthCheckRequest, context) {
        const read = names.includes(service)
          ? () => statusNow(context)
          : async () => ServingStatus.SERVICE_UNKNOWN;
        return watch(read, context.signal);
      },
    });
  };
}

/** Yields the status now and whenever it changes, until the signal aborts. */
async function* watch(
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
