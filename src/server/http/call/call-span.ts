/** The span of a request: one each, from its headers to the end of its response. */
import { environmentName } from '../../../protocol/environment.js';
import type { Call } from '../../core/call.js';
import {
  beginTrace,
  isSampled,
  isTracing,
  type OpenSpan,
  type SpanAttributes,
} from '../../telemetry/spans.js';
import type { Observation, RequestRecord } from '../socket/requests.js';

/** `traceparent` of the versions that exist has 55 characters. */
const MAX_TRACEPARENT = 128;
/** Traces that callers make this process record in a second. Their own SDKs record every call by default. */
const MAX_FOLLOWED_PER_SECOND = 10;

/** Begins the span of an admitted call, and sets it. */
type BeginCallSpan = (call: Call) => OpenSpan | null | undefined;

/**
 * Continues the trace of a caller with valid credentials: one that is not recorded always, recorded ones up to ten a
 * second. Others begin a new trace, which the sampler decides on, so that no caller decides how much is recorded.
 */
export function createCallSpans(nowMs: () => number): BeginCallSpan {
  const mayFollow = createAllowance(nowMs, MAX_FOLLOWED_PER_SECOND);
  const traceparentOf = ({ principal, header }: Call) => {
    const given = principal === undefined ? undefined : header('traceparent');
    if (given === undefined || given.length > MAX_TRACEPARENT) return undefined;
    return !isSampled(given) || mayFollow() ? given : undefined;
  };
  return (call) => {
    if (!isTracing()) return undefined;
    const startedAt = new Date(nowMs() - (performance.now() - call.startedMs));
    const options = { kind: 'server', traceparent: traceparentOf(call), startedAt } as const;
    call.span = beginTrace(methodName(call), options) ?? null;
    return call.span;
  };
}

/** Ends the span of a finished request; of one that did not become a call, makes the whole of it. */
export function endRequestSpan(
  observation: Observation,
  { call, route }: RequestRecord,
  nowMs: number,
): void {
  if (call?.span === null || !isTracing()) return;
  const { durationMs, status, error, method } = observation;
  const startedAt = new Date(nowMs - durationMs);
  const span = call?.span === undefined ? beginTrace(method, { kind: 'server', startedAt }) : call.span;
  span?.end(
    attributesOf(observation, { call, route }),
    status >= 500 ? (error ?? String(status)) : undefined,
  );
}

function attributesOf(
  { requestId, protocol, method, status, error, projectId }: Observation,
  { call, route }: Pick<RequestRecord, 'call' | 'route'>,
): SpanAttributes {
  const rpcMethod = call && methodName(call);
  const environment = call?.principal?.environment;
  const isRpc = call !== undefined && protocol !== 'rest';
  return {
    'http.request.method': method,
    'http.response.status_code': status,
    ...(isRpc ? { 'rpc.system.name': protocol === 'connect' ? 'connectrpc' : 'grpc' } : {}),
    ...(rpcMethod === undefined ? {} : { 'rpc.method': rpcMethod }),
    ...(route === undefined ? {} : { 'http.route': route }),
    ...(error === undefined ? {} : { 'attest.error': error }),
    ...(projectId === undefined ? {} : { 'attest.project.id': projectId }),
    ...(environment === undefined ? {} : { 'attest.environment': environmentName(environment) }),
    'attest.request.id': requestId,
  };
}

/** The full name of a call's method, as gRPC has it. */
function methodName({ method }: Pick<Call, 'method'>): string {
  return `${method.parent.typeName}/${method.name}`;
}

function createAllowance(nowMs: () => number, perSecond: number): () => boolean {
  let second = 0;
  let used = 0;
  return () => {
    const now = Math.floor(nowMs() / 1000);
    if (now !== second) used = 0;
    second = now;
    return ++used <= perSecond;
  };
}
