import { setTimeout as delay } from 'node:timers/promises';
import { create, type Message } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  Health,
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../../../gen/grpc/health/v1/health_pb.js';
import { describeRpc, type PublicCall, type PublicRpc } from '../../core/public-rpc.js';

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
export function healthRpcs(deps: HealthDeps): PublicRpc[] {
  const names = [SERVER, ...deps.services];
  const readReadiness = cachedReadiness(deps);
  const statusNow = async ({ isClosing }: PublicCall) =>
    !isClosing() && (await readReadiness()) ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  const { check, list, watch } = Health.method;
  return [
    {
      ...describeRpc(check),
      kind: 'unary',
      answer: async ({ service }: HealthCheckRequest, call) => {
        if (!names.includes(service)) {
          throw new ConnectError(`no service is called ${JSON.stringify(service)}`, Code.NotFound);
        }
        return create(HealthCheckResponseSchema, { status: await statusNow(call) });
      },
    },
    {
      ...describeRpc(list),
      kind: 'unary',
      answer: async (_request: Message, call) => {
        const status = await statusNow(call);
        const statuses = Object.fromEntries(names.map((name) => [name, { status }]));
        return create(HealthListResponseSchema, { statuses });
      },
    },
    {
      ...describeRpc(watch),
      kind: 'server_streaming',
      answer: ({ service }: HealthCheckRequest, call) => {
        const isKnown = names.includes(service);
        return watchStatus(
          isKnown ? () => statusNow(call) : async () => ServingStatus.SERVICE_UNKNOWN,
          call.signal(),
        );
      },
    },
  ];
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
