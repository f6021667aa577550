// The real server over handlers with fixed answers, and a fixed directory of keys.
import { Writable } from 'node:stream';
import { create } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { Bucket } from '../../../gen/attestation/options/v1/options_pb.js';
import {
  AttestationService,
  BatchCreateAttestationsResponseSchema,
  SubmissionSchema,
} from '../../../gen/attestation/v1/attestations_pb.js';
import {
  BatchSchema,
  BatchService,
  ListBatchesResponseSchema,
} from '../../../gen/attestation/v1/batches_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { HealthSchema, InfoService } from '../../../gen/attestation/v1/service_pb.js';
import type { Call, Handlers } from '../../../src/server/core/call.js';
import { ApiError } from '../../../src/server/core/errors.js';
import { createLogger } from '../../../src/server/core/logger.js';
import type { Principal } from '../../../src/server/core/principal.js';
import { type RateState, rateLimitExceeded } from '../../../src/server/core/rate-window.js';
import { type ApiServer, createServer, type ServerDeps } from '../../../src/server/http/server.js';
import type { Observation } from '../../../src/server/http/socket/requests.js';

export const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 250);
export const KEYS = {
  all: 'svc_test_all',
  other: 'svc_test_other',
  noScopes: 'svc_test_none',
  spent: 'svc_test_spent',
};
/** Size of the batch `btc_large`, and of the answer to a batch, which changes something if it has several items. */
export const LARGE_BYTES = 2_000_000;
/** What a handler's failure says; no answer may hold it. */
export const SECRET_FAILURE = 'relation "secret_table" does not exist';

export type TestServer = {
  server: ApiServer;
  port: number;
  baseUrl: string;
  /** One that may do everything. */
  key: string;
  /** Parsed log lines. */
  lines: Record<string, unknown>[];
  observations: Observation[];
  /** Calls that reached a handler. */
  calls: Call[];
  /** Resolves when a finished request matches. */
  observed: (matches: (observation: Observation) => boolean) => Promise<Observation>;
};

/** Starts it until the test ends. `gate` holds `GetBatch` of `btc_gate`. */
export async function startApiServer(
  t: Test,
  { gate = Promise.resolve(), limits, ...overrides }: Partial<ServerDeps> & { gate?: Promise<void> } = {},
): Promise<TestServer> {
  const lines: Record<string, unknown>[] = [];
  const observations: Observation[] = [];
  const watchers = new Set<(observation: Observation) => void>();
  const calls: Call[] = [];
  const server = createServer({
    services: [
      { desc: InfoService, handlers: infoHandlers(calls) },
      { desc: BatchService, handlers: batchHandlers(calls, gate) },
      { desc: AttestationService, handlers: attestationHandlers(calls) },
    ],
    principals: { peek: () => undefined, get: async (token) => PRINCIPALS.get(token) },
    isAdmin: async (token) => token === 'admin',
    takeReads: takeRead,
    chargeReads: () => {},
    findOverdrawn: () => undefined,
    findSpentCeiling: () => undefined,
    hasClaim: async () => false,
    submissionWindows: {
      peek: () => undefined,
      get: async (principal) => submissionStates(isSpent(principal) ? 0 : 9_000),
    },
    nowMs: () => NOW_MS,
    log: createLogger({ level: 'debug', destination: lineCollector(lines) }),
    observe: (observation) => {
      observations.push(observation);
      for (const watcher of watchers) watcher(observation);
    },
    limits: { idleGraceMs: 10, ...limits },
    ...overrides,
  });
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => server.close());
  return {
    server,
    port,
    key: KEYS.all,
    baseUrl: `http://127.0.0.1:${port}`,
    lines,
    observations,
    calls,
    observed: (matches) =>
      new Promise((resolve) => {
        const watcher = (observation: Observation) => {
          if (!matches(observation)) return;
          watchers.delete(watcher);
          resolve(observation);
        };
        watchers.add(watcher);
        observations.forEach(watcher);
      }),
  };
}

function infoHandlers(calls: Call[]): Handlers<typeof InfoService> {
  const unused = () => Promise.reject(new Error('not part of this test'));
  return {
    getHealth: async (_request, call) => {
      calls.push(call);
      return create(HealthSchema, { status: 'ok' });
    },
    getMe: unused,
    getTrustRoots: unused,
  };
}

/** `GetBatch` does what the id says. */
function batchHandlers(calls: Call[], gate: Promise<void>): Handlers<typeof BatchService> {
  return {
    async getBatch({ id }, call) {
      calls.push(call);
      switch (id) {
        case 'btc_missing':
          throw new ApiError(ErrorCode.BATCH_NOT_FOUND, 'no such batch');
        case 'btc_busy':
          throw new ApiError(ErrorCode.SERVICE_UNAVAILABLE, 'try later', {}, { 'retry-after': '7' });
        case 'btc_broken':
          throw new Error(SECRET_FAILURE);
        case 'btc_never':
          await new Promise((_resolve, reject) => {
            call.signal().addEventListener('abort', () => reject(new Error('aborted')), { once: true });
          });
          break;
        case 'btc_gate':
          await gate;
          break;
        case 'btc_large':
          return create(BatchSchema, { id, checkpoint: 'x'.repeat(LARGE_BYTES) });
      }
      return create(BatchSchema, { id });
    },
    async listBatches(_request, call) {
      calls.push(call);
      return create(ListBatchesResponseSchema);
    },
  };
}

function attestationHandlers(calls: Call[]): Handlers<typeof AttestationService> {
  const unused = () => Promise.reject(new Error('not part of this test'));
  return {
    createAttestation: async (request, call) => {
      calls.push(call);
      call.rateStates = submissionStates(8_999);
      return create(SubmissionSchema, {
        id: 'sub_1',
        artifact: request.artifact,
        metadata: request.metadata,
      });
    },
    batchCreateAttestations: async (_request, call) => {
      calls.push(call);
      let count = 0;
      while (call.nextItem?.() !== undefined) count++;
      call.hasChanged = count > 1;
      return create(BatchCreateAttestationsResponseSchema, {
        results: [{ error: { message: 'x'.repeat(LARGE_BYTES) } }],
      });
    },
    getAttestation: unused,
    updateAttestation: unused,
    deleteAttestation: unused,
    listAttestations: unused,
    getBundle: unused,
    downloadBundle: unused,
  };
}

function principal(id: string, scopes: readonly string[]): Principal {
  return {
    id,
    projectId: 'prj_1',
    environment: Environment.TEST,
    scopes,
    submissionWindows: [
      { windowSeconds: 1, limit: 60 },
      { windowSeconds: 3_600, limit: 10_000 },
    ],
    readWindow: { windowSeconds: 1, limit: 600 },
  };
}

const PRINCIPALS: ReadonlyMap<string, Principal> = new Map([
  [KEYS.all, principal('key_all', ['attestations:read', 'attestations:write', 'batches:read'])],
  [KEYS.other, principal('key_other', ['attestations:read', 'attestations:write', 'batches:read'])],
  [KEYS.noScopes, principal('key_none', [])],
  [KEYS.spent, principal('key_spent', ['attestations:write', 'batches:read'])],
]);

function isSpent({ id }: Principal): boolean {
  return id === 'key_spent';
}

async function takeRead(principal: Principal): Promise<RateState> {
  const remaining = isSpent(principal) ? 0 : 599;
  const state = { bucket: Bucket.READS, windowSeconds: 1, limit: 600, remaining, resetAtMs: NOW_MS + 750 };
  if (remaining === 0) throw rateLimitExceeded(state, NOW_MS);
  return state;
}

function submissionStates(leftInHour: number): RateState[] {
  return [
    { bucket: Bucket.SUBMISSIONS, windowSeconds: 1, limit: 60, remaining: 9_000, resetAtMs: NOW_MS + 750 },
    {
      bucket: Bucket.SUBMISSIONS,
      windowSeconds: 3_600,
      limit: 10_000,
      remaining: leftInHour,
      resetAtMs: NOW_MS + 3_000_750,
    },
  ];
}

function lineCollector(lines: Record<string, unknown>[]): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().split('\n')) if (line !== '') lines.push(JSON.parse(line));
      done();
    },
  });
}
