import type { DescMethodUnary, Message } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { MethodRules } from '../../../../gen/attestation/options/v1/options_pb.js';
import { type Call, messageOf } from '../../core/call.js';
import { ApiError, deadlineExceeded, internalError } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import { boundBy, findBound } from '../../json/bound.js';
import { compileValueCheck } from '../../json/check-values.js';
import { findItemReader } from '../call/batch-items.js';
import type { Interceptors } from '../call/interceptors.js';
import { newCall } from '../call/new-call.js';
import { compileMessageCheck } from '../call/validate.js';
import { decodePercent } from '../request-target.js';
import { methodRules, type ServiceEntry, unaryMethods } from '../services.js';
import { ClientGone, type HoldBytes, type Holder, type HoldResponse } from '../socket/bodies.js';
import type { RequestRecord } from '../socket/requests.js';
import { setHeaders } from '../socket/write-response.js';
import { asApiError } from './connect-error.js';
import {
  findFormat,
  findQueryFormat,
  type MessageFormat,
  type MessageRules,
  protocolOf,
  type ReceivedMessage,
  readBodyMessage,
  readQueryMessage,
} from './messages.js';
import { otherMethod, refusalResponse, refuseFormat } from './refusal.js';
import { successResponse, writeRpcResponse } from './response.js';
import { startDeadline } from './rpc-deadline.js';

type UnaryRpcDeps = {
  services: readonly ServiceEntry[];
  interceptors: Interceptors;
  log: Logger;
  /** Maximum of the message of any call; the bound of its own type may be lower. */
  maxBodyBytes: number;
  /** Counts the bytes of bodies until their requests are responded to. */
  holdFor: (holder: Holder) => HoldBytes;
  /** Counts the bytes of responses until they are sent. */
  holdResponse: HoldResponse;
};

/** An RPC, compiled. */
type Rpc = MessageRules & {
  method: DescMethodUnary;
  rules: MethodRules;
  httpMethods: readonly string[];
  /** Throws `request.invalid` for values that REST rejects. */
  check: (message: Message) => void;
};

/** The unary RPCs of some services on Connect, gRPC and gRPC-Web. */
export type UnaryRpcs = {
  /** Looks up an RPC by the path of a request. */
  find: (path: string) => Rpc | undefined;
  /** Responds to a request for an RPC. Never rejects. */
  handle: (rpc: Rpc, record: RequestRecord) => Promise<void>;
  /** Responds with an error in place of the pending response, which is dropped. */
  refuse: (record: RequestRecord, error: ApiError) => void;
};

/**
 * Serves the unary RPCs of the services, the same steps for each protocol: headers are checked first, and only for an
 * admitted call is a body read, decompressed and parsed, within its bound.
 */
export function createUnaryRpcs(deps: UnaryRpcDeps): UnaryRpcs {
  const rpcs = new Map(
    unaryMethods(deps.services).map((method) => [
      `/${method.parent.typeName}/${method.name}`,
      describe(method, deps.maxBodyBytes),
    ]),
  );
  return {
    find: (path) => rpcs.get(path.includes('%') ? (decodePercent(path) ?? path) : path),
    async handle(rpc, record) {
      if (!rpc.httpMethods.includes(record.req.method ?? '')) {
        await deps.interceptors.countUnrouted(record);
        return otherMethod(rpc.httpMethods, record);
      }
      await respond(deps, rpc, record);
    },
    refuse: (record, error) => refuse(deps, record, error),
  };
}

function describe(method: DescMethodUnary, maxBodyBytes: number): Rpc {
  const isSafe = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  return {
    method,
    rules: methodRules(method),
    desc: method.input,
    httpMethods: isSafe ? ['GET', 'POST'] : ['POST'],
    bound: boundBy(findBound(method.input), maxBodyBytes),
    checkValues: compileValueCheck(method.input),
    readItems: findItemReader(method),
    check: compileMessageCheck(method.input),
  };
}

async function respond(deps: UnaryRpcDeps, rpc: Rpc, record: RequestRecord): Promise<void> {
  const { interceptors } = deps;
  const { req } = record;
  const query = req.method === 'GET' ? new URL(req.url ?? '', 'http://localhost').searchParams : undefined;
  const format = query ? findQueryFormat(query.get('encoding')) : findFormat(req.headers['content-type']);
  record.protocol = format?.protocol ?? protocolOf(req.headers['content-type']);
  const deadline = startDeadline(record, () => refuse(deps, record, deadlineExceeded()));
  const call = newCall(rpc, record, deadline.signal);
  record.call = call;
  try {
    const admitted = interceptors.admit(call);
    if (admitted instanceof ApiError) return refuse(deps, record, admitted);
    await admitted;
    if (format === undefined) {
      setHeaders(record.res, interceptors.rateHeaders(call));
      return refuseFormat(record);
    }
    deadline.assertOpen();
    const { message, isGzip, nextItem } = await read(deps, { rpc, record, call, format, query });
    call.nextItem = nextItem;
    deadline.assertOpen();
    rpc.check(message);
    const response = messageOf(await interceptors.invoke(call, message));
    if (record.res.writableEnded) return;
    const rateHeaders = interceptors.rateHeaders(call);
    const { responseHeaders } = call;
    const success = { record, responseHeaders, format, isGzip, rateHeaders };
    const answer = await successResponse(success, rpc.method.output, response);
    deps.holdResponse(record, answer.body?.length ?? 0);
    writeRpcResponse(record, answer);
  } catch (error) {
    refuse(deps, record, error);
  } finally {
    deadline.stop();
  }
}

type Receiving = {
  rpc: Rpc;
  record: RequestRecord;
  call: Call;
  format: MessageFormat;
  query: URLSearchParams | undefined;
};

function read(
  { holdFor }: UnaryRpcDeps,
  { rpc, record, call, format, query }: Receiving,
): Promise<ReceivedMessage> {
  if (query !== undefined) return readQueryMessage(query, format, rpc);
  return readBodyMessage(record.req, format, rpc, holdFor({ res: record.res, call }));
}

/** Rejects a request, in the form of its protocol, unless it has a response. */
function refuse({ interceptors, log }: UnaryRpcDeps, record: RequestRecord, thrown: unknown): void {
  const { call, res } = record;
  if (thrown instanceof ClientGone) return;
  const error = call === undefined ? (thrown as ApiError) : asApiError(log, thrown, call);
  if (res.writableEnded) return;
  if (res.headersSent) return void res.destroy();
  const rateHeaders = call === undefined ? [] : interceptors.rateHeaders(call);
  for (let i = 0; i < rateHeaders.length; i += 2) {
    call?.responseHeaders.set(rateHeaders[i] as string, rateHeaders[i + 1] as string);
  }
  try {
    writeRpcResponse(record, refusalResponse(record, error, call?.responseHeaders));
  } catch (failure) {
    // A header of the call is invalid in HTTP: respond without them.
    log.error({ err: failure, request_id: record.requestId }, 'a call failed');
    writeRpcResponse(record, refusalResponse(record, internalError(record.requestId, failure)));
  }
}
