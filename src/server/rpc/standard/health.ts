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

export type HealthDeps = {
  /** Full names of the services that health can be asked of; all have the same. */
  services: readonly string[];
  /** Whether this process can do its work, as `/readyz` says. */
  isReady: () => Promise<boolean>;
  /** Milliseconds of a clock that never steps. */
  monotonicMs: () => number;
};

/** The process is looked at no more often than this, however many ask. */
const LOOK_MS = 500;
/** The name that stands for the server as a whole. */
const WHOLE = '';

/**
 * Serves `grpc.health.v1.Health` to anyone who asks. While the server drains, everything is NOT_SERVING; a watch says
 * so, too, before it ends.
 */
export function healthRoutes(deps: HealthDeps): (router: ConnectRouter) => void {
  const names = [WHOLE, ...deps.services];
  const look = sharedLook(deps);
  /** The context's signal aborts when the server begins to drain. */
  const statusNow = async ({ signal }: HandlerContext) =>
    !signal.aborted && (await look()) ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
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

/** The status now and whenever it changes, until the signal aborts. */
async function* watch(
  read: () => Promise<ServingStatus>,
  signal: AbortSignal,
): AsyncIterable<HealthCheckResponse> {
  let told: ServingStatus | undefined;
  for (let last = false; !last; ) {
    last = signal.aborted;
    const status = await read();
    if (status !== told) yield create(HealthCheckResponseSchema, { status });
    told = status;
    if (!last) await delay(LOOK_MS, undefined, { signal }).catch(() => {});
  }
}

/** One look at the process for all who ask within `LOOK_MS` of each other. */
function sharedLook({ isReady, monotonicMs }: HealthDeps): () => Promise<boolean> {
  let latest = Promise.resolve(false);
  let latestMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (monotonicMs() - latestMs < LOOK_MS) return latest;
    latestMs = monotonicMs();
    latest = isReady();
    return latest;
  };
}
