import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { monotonicFactory } from 'ulid';
import type { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../../protocol/error-rules.js';
import type { Call } from '../../core/call.js';
import type { Logger } from '../../core/logger.js';
import { credentialId } from '../../core/principal.js';
import { createRandomSource } from '../../core/random.js';
import type { SpanReference } from '../../telemetry/spans.js';

export type NodeRequest = IncomingMessage | Http2ServerRequest;
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** A request's protocol; `other` is a public page or unknown. */
export type Protocol = 'rest' | 'connect' | 'grpc' | 'grpc-web' | 'other';

/** One HTTP request, from its headers to the end of its response. */
export type RequestRecord = {
  readonly requestId: string;
  readonly req: NodeRequest;
  readonly res: NodeResponse;
  readonly startedMs: number;
  /** The address or network that the client counts for, once it is known; undefined of a trusted proxy. */
  peer: string | undefined;
  protocol: Protocol;
  /** The path of its REST route, with names in place of values. */
  route?: string | undefined;
  /** Once the request is known to be an RPC. */
  call: Call | undefined;
  /** Whether it fails when there is no response in time: not streams, nor calls with a deadline of their own. */
  timesOut: boolean;
  /** Why it was rejected or failed, if known. */
  error: ErrorCode | undefined;
};

/** A finished request, for logs and metrics: without headers, body or query. */
export type Observation = {
  requestId: string;
  protocol: Protocol;
  method: string;
  /** Without the query, cut to 256 characters. */
  path: string;
  /** `InfoService/GetHealth`; undefined when it was no RPC. */
  rpc: string | undefined;
  /** The HTTP status; on gRPC, that of the error's code; 499 if the client disconnected before the response. */
  status: number;
  /** The dotted error code, where known. */
  error: string | undefined;
  durationMs: number;
  apiKeyId: string | undefined;
  sessionId: string | undefined;
  projectId: string | undefined;
  /** Its span, if it is recorded. */
  span: SpanReference | undefined;
};

/** A record and its index among the open ones. */
type OpenRequest = RequestRecord & { place: number };

type RequestsDeps = {
  newRequestId: () => string;
  /** Milliseconds of a clock that never steps. */
  monotonicMs: () => number;
  observe: (observation: Observation, record: RequestRecord) => void;
  /** Called for every request that has ended. */
  onEnd: (record: RequestRecord) => void;
};

/** The open requests. */
export type Requests = {
  /** Adds a request. When its response ends, it is removed and passed to `observe`. */
  begin: (req: NodeRequest, res: NodeResponse) => RequestRecord;
  /** In no particular order. */
  all: () => readonly RequestRecord[];
  /** Resolves once none is open. */
  ended: () => Promise<void>;
};

const MAX_PATH_CHARACTERS = 256;
const CLIENT_CLOSED_REQUEST = 499;

/** Makes an empty list of open requests. */
export function createRequests({ newRequestId, monotonicMs, observe, onEnd }: RequestsDeps): Requests {
  // Not a Set: what its discarded tables hold lives until a full collection, and with it most of each request.
  const open: OpenRequest[] = [];
  let waiting: (() => void)[] = [];
  const end = (record: OpenRequest) => {
    if (open[record.place] !== record) return;
    const last = open.pop() as OpenRequest;
    if (last !== record) {
      open[record.place] = last;
      last.place = record.place;
    }
    onEnd(record);
    observe(observation(record, monotonicMs()), record);
    if (open.length > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  return {
    begin(req, res) {
      const record: OpenRequest = {
        requestId: newRequestId(),
        req,
        res,
        startedMs: monotonicMs(),
        peer: undefined,
        protocol: 'other',
        route: undefined,
        call: undefined,
        timesOut: false,
        error: undefined,
        place: open.length,
      };
      open.push(record);
      whenClosed(res, () => end(record));
      closeWithSocket(req, res);
      return record;
    },
    all: () => open,
    ended: () =>
      new Promise((resolve) => {
        if (open.length === 0) resolve();
        else waiting.push(resolve);
      }),
  };
}

const WORK: unique symbol = Symbol('work');

/**
 * Runs `work` when a response closes, after what was added before. One listener for all takes less than half the time of
 * one for each.
 */
export function whenClosed(res: NodeResponse & { [WORK]?: (() => void)[] }, work: () => void): void {
  const known = res[WORK];
  if (known !== undefined) {
    known.push(work);
    return;
  }
  const all = [work];
  res[WORK] = all;
  res.on('close', () => {
    for (const one of all.splice(0)) one();
  });
}

/** Responses to pipelined requests that are queued behind others, by connection. */
const queuedResponses = new WeakMap<NodeRequest['socket'], Set<ServerResponse>>();

/** Node does not close the response to a pipelined request that is still queued when the connection ends. */
function closeWithSocket(req: NodeRequest, res: NodeResponse): void {
  if (!('assignSocket' in res) || res.socket !== null) return;
  const waiting = queuedResponses.get(req.socket) ?? watchSocket(req.socket);
  waiting.add(res);
  res.once('close', () => waiting.delete(res));
}

/** Adds one listener for all pipelined requests of a connection. */
function watchSocket(socket: NodeRequest['socket']): Set<ServerResponse> {
  const waiting = new Set<ServerResponse>();
  queuedResponses.set(socket, waiting);
  socket.once('close', () => {
    for (const res of waiting) {
      if (res.socket !== null || res.closed) continue;
      res.destroy();
      res.emit('close');
    }
  });
  return waiting;
}

/** Whether the response has ended, or its client has disconnected. */
export function isClosed(res: NodeResponse): boolean {
  return 'assignSocket' in res ? res.closed : res.stream.destroyed;
}

/** The path of a request target, without its query. */
export function pathOf(target = ''): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

function observation(record: RequestRecord, nowMs: number): Observation {
  const { call, error, req } = record;
  return {
    requestId: record.requestId,
    protocol: record.protocol,
    method: req.method ?? '',
    path: pathOf(req.url).slice(0, MAX_PATH_CHARACTERS),
    rpc: call === undefined ? undefined : `${call.method.parent.name}/${call.method.name}`,
    status: statusOf(record),
    error: error === undefined ? undefined : errorRules(error).code,
    durationMs: nowMs - record.startedMs,
    apiKeyId: call?.session === undefined && call?.principal ? credentialId(call.principal) : undefined,
    sessionId: call?.session?.id,
    projectId: call?.principal?.projectId,
    span: call?.span?.reference,
  };
}

function statusOf({ protocol, res, error, call }: RequestRecord): number {
  if (!res.writableEnded) return CLIENT_CLOSED_REQUEST;
  if (protocol !== 'grpc' && protocol !== 'grpc-web') return res.statusCode;
  if (error !== undefined) return errorRules(error).httpStatus;
  return call === undefined ? res.statusCode : call.rules.successStatus || res.statusCode;
}

/** Makes request ids: `req_` and a ULID, increasing within a process. */
export function createRequestIds(nowMs: () => number): () => string {
  const next = monotonicFactory(createRandomSource().fraction);
  return () => `req_${next(nowMs())}`;
}

/** Writes the line of each finished request: caller, method, outcome, duration; no header, body, query or token. */
export function createRequestLog(log: Logger): (observation: Observation) => void {
  // No redaction: it costs more than the line itself, and the members are known.
  const lines = log.child({}, { redact: [] });
  return (observation) => {
    if (lines.isLevelEnabled('info')) lines.info(describe(observation), 'request');
  };
}

function describe(observation: Observation): Record<string, string | number | undefined> {
  return {
    request_id: observation.requestId,
    surface: observation.protocol,
    method: observation.method,
    path: observation.path,
    rpc: observation.rpc,
    status: observation.status,
    error: observation.error,
    duration_ms: Math.round(observation.durationMs * 100) / 100,
    api_key_id: observation.apiKeyId,
    session_id: observation.sessionId,
    project_id: observation.projectId,
    trace_id: observation.span?.traceId,
    span_id: observation.span?.spanId,
  };
}
