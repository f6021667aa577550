/** The HTTP interface of a C2SP witness: `POST /add-checkpoint`, and `GET /<hex SHA-256 of the origin>/checkpoint`. */
import type { TlsFiles } from '../../config/tls-files.js';
import { fromUtf8 } from '../../proof/bytes/encoding.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { ADD_CHECKPOINT_PATH, MAX_ADD_CHECKPOINT_BYTES } from '../../proof/log/add-checkpoint.js';
import { errorRules } from '../../protocol/error-rules.js';
import { ApiError } from '../core/errors.js';
import { listen } from '../core/http/listen.js';
import type { Logger } from '../core/logger.js';
import { ClientGone, type HoldBytes, holdBody, readStream, tooLarge } from '../http/socket/bodies.js';
import { createByteBudget } from '../http/socket/byte-budget.js';
import { refuseMalformed } from '../http/socket/client-error.js';
import { closeAfterResponse, drain } from '../http/socket/drain.js';
import { DEFAULT_LIMITS, type Limits } from '../http/socket/limits.js';
import { createListener } from '../http/socket/listener.js';
import { createPeers } from '../http/socket/peers.js';
import { watchTimeouts } from '../http/socket/request-timeout.js';
import {
  createRequestIds,
  createRequestLog,
  createRequests,
  type NodeResponse,
  type Observation,
  pathOf,
  type RequestRecord,
} from '../http/socket/requests.js';
import { writeResponse } from '../http/socket/write-response.js';
import type { Answer } from './cosigner.js';

export type CosignerServerDeps = {
  addCheckpoint: (request: string) => Promise<Answer>;
  /** The newest cosigned note of the log with this origin hash, if it is known. */
  findNote: (originHash: string) => Promise<string | undefined>;
  log: Logger;
  nowMs: () => number;
  /** Called for every finished request, for metrics; it is logged already. */
  observe: (observation: Observation) => void;
  limits?: Partial<Limits>;
  tls?: TlsFiles | undefined;
};

export type CosignerServer = {
  /** Starts to listen; a port of 0 picks a free one. */
  listen: (address: { host: string; port: number }) => Promise<{ port: number }>;
  /** Drains: finishes open requests within `graceMs`. */
  close: () => Promise<void>;
  /** Reads certificate and key again, for new connections; throws when they cannot be used and keeps the old. */
  reloadTls: () => void;
};

type Reply = Answer & { headers?: readonly string[] };

const MONITORING = /^\/([0-9a-f]{64})\/checkpoint$/;
const TEXT = 'text/plain; charset=utf-8';
const NOT_FOUND: Reply = { status: 404, contentType: TEXT, body: 'not found\n' };
const CHECKPOINT_HEADERS = ['cache-control', 'public, max-age=5', 'access-control-allow-origin', '*'];

/** Creates the server, over HTTP/1.1 and HTTP/2, with or without TLS. It serves anyone, within the limits. */
export function createCosignerServer(deps: CosignerServerDeps): CosignerServer {
  const limits = { ...DEFAULT_LIMITS, ...deps.limits };
  const newRequestId = createRequestIds(deps.nowMs);
  const logRequest = createRequestLog(deps.log);
  const peers = createPeers(limits);
  const handle = createHandler(deps, limits);
  const requests = createRequests({
    onEnd: peers.removeRequest,
    newRequestId,
    monotonicMs: () => performance.now(),
    observe: (observation) => {
      logRequest(observation);
      deps.observe(observation);
    },
  });
  let isClosing = false;
  const listener = createListener({
    limits,
    tls: deps.tls,
    onConnection: peers.addConnection,
    onRequest: (req, res) => {
      if (isClosing) closeAfterResponse(res);
      const record = requests.begin(req, res);
      record.protocol = 'rest';
      record.timesOut = true;
      const refusal = peers.addRequest(record);
      if (refusal === undefined) void handle(record);
      else send(record, replyOf(refusal));
    },
    onClientError: (error, socket) => {
      const isResponding = requests.all().some(({ req, res }) => req.socket === socket && res.headersSent);
      refuseMalformed(error, socket, newRequestId(), isResponding);
    },
  });
  const late: Reply = { status: 503, contentType: TEXT, body: 'no answer in time: try again\n' };
  const stopWatching = watchTimeouts(requests, limits, (record) => send(record, late));
  return {
    listen: (address) => listen(listener.server, address),
    close: async () => {
      isClosing = true;
      await drain(listener, requests, limits);
      stopWatching();
    },
    reloadTls: listener.reloadTls,
  };
}

/** Answers one request. Never rejects. */
function createHandler(deps: CosignerServerDeps, limits: Limits): (record: RequestRecord) => Promise<void> {
  const budget = createByteBudget();
  const hold = (res: NodeResponse) => holdBody(budget, res, [{ name: 'all', max: limits.maxHeldBytes }]);
  return async (record) => {
    try {
      send(record, await route(deps, record, hold));
    } catch (error) {
      if (error instanceof ClientGone) return;
      if (error instanceof ApiError) return send(record, replyOf(error));
      if (error instanceof FormatError) return send(record, plain(400, error.message));
      deps.log.error({ err: error, request_id: record.requestId }, 'a request failed');
      send(record, plain(503, 'this witness cannot store checkpoints now'));
    }
  };
}

async function route(
  deps: CosignerServerDeps,
  record: RequestRecord,
  hold: (res: NodeResponse) => HoldBytes,
): Promise<Reply> {
  const { req, res } = record;
  const path = pathOf(req.url);
  if (path === ADD_CHECKPOINT_PATH) {
    if (req.method !== 'POST') return notAllowed('POST');
    if (req.headers['content-encoding'] !== undefined) return plain(415, 'no content encoding is read');
    const tooMuch = () => tooLarge(MAX_ADD_CHECKPOINT_BYTES);
    if (Number(req.headers['content-length'] ?? 0) > MAX_ADD_CHECKPOINT_BYTES) throw tooMuch();
    const body = await readStream(req, MAX_ADD_CHECKPOINT_BYTES, tooMuch, hold(res));
    return deps.addCheckpoint(fromUtf8(body));
  }
  const [, hash] = MONITORING.exec(path) ?? [];
  if (hash === undefined) return NOT_FOUND;
  if (req.method !== 'GET' && req.method !== 'HEAD') return notAllowed('GET, HEAD');
  const note = await deps.findNote(hash);
  return note === undefined
    ? NOT_FOUND
    : { status: 200, contentType: TEXT, body: note, headers: CHECKPOINT_HEADERS };
}

function notAllowed(methods: string): Reply {
  return { ...plain(405, `only ${methods}`), headers: ['allow', methods] };
}

function plain(status: number, message: string): Reply {
  return { status, contentType: TEXT, body: `${message}\n` };
}

function replyOf({ code, message }: ApiError): Reply {
  return plain(errorRules(code).httpStatus, message);
}

function send(
  { req, res, requestId }: RequestRecord,
  { status, contentType, body, headers = [] }: Reply,
): void {
  writeResponse(req, res, {
    status,
    headers: ['content-type', contentType, 'x-request-id', requestId, ...headers],
    body: Buffer.from(body),
    etag: undefined,
  });
}
