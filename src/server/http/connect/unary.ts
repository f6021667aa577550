import type { DescMethodUnary, Message } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { ConnectError } from '@connectrpc/connect';
import type { MethodRules } from '../../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { type Call, messageOf } from '../../core/call.js';
import { ApiError, deadlineExceeded, internalError } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import { boundBy, findBound } from '../../json/bound.js';
import { compileValueCheck } from '../../json/check-values.js';
import { findItemReader } from '../call/batch-items.js';
import type { Interceptors } from '../call/interceptors.js';
import { newCall } from '../call/new-call.js';
import { compileMessageCheck } from '../call/validate.js';
import { methodRules } from '../services.js';
import { ClientGone, type HoldBytes, type Holder, type HoldResponse } from '../socket/bodies.js';
import type { RequestRecord } from '../socket/requests.js';
import { setHeaders } from '../socket/write-response.js';
import { startDeadline } from './deadline.js';
import { asApiError, toConnectError } from './errors.js';
import {
  findFormat,
  type JsonOptions,
  type MessageFormat,
  type MessageRules,
  protocolOf,
  readBodyMessage,
} from './messages.js';
import { errorResponse, refuseFormat } from './refusal.js';
import { successResponse, writeRpcResponse } from './response.js';

/** Dependencies of unary calls. */
export type UnaryDeps = {
  interceptors: Interceptors;
  log: Logger;
  /** Counts the bytes of bodies until their requests are responded to. */
  holdFor: (holder: Holder) => HoldBytes;
  /** Counts the bytes of responses until they are sent. */
  holdResponse: HoldResponse;
};

/** A unary RPC, compiled. */
export type Rpc = MessageRules & {
  method: DescMethodUnary;
  rules: MethodRules;
  httpMethods: readonly string[];
  /** Throws `request.invalid` for values that REST rejects. */
  check: (message: Message) => void;
};

/** Compiles an RPC. `maxBodyBytes`: maximum of any message; the bound of its own type may be lower. */
export function compileRpc(method: DescMethodUnary, maxBodyBytes: number, jsonOptions: JsonOptions): Rpc {
  const isSafe = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  return {
    method,
    rules: methodRules(method),
    desc: method.input,
    jsonOptions,
    httpMethods: isSafe ? ['GET', 'POST'] : ['POST'],
    bound: boundBy(findBound(method.input), maxBodyBytes),
    checkValues: compileValueCheck(method.input),
    readItems: findItemReader(method),
    check: compileMessageCheck(method.input),
  };
}

/**
 * Responds to a POST by Connect, gRPC or gRPC-Web: headers are checked first, and only for an admitted call is a body
 * read, decompressed and parsed, within its bound. Connect's library takes two to four times the CPU. Never rejects.
 */
export async function serveUnary(deps: UnaryDeps, rpc: Rpc, record: RequestRecord): Promise<void> {
  const { interceptors } = deps;
  const contentType = record.req.headers['content-type'];
  const format = findFormat(contentType);
  record.protocol = format?.protocol ?? protocolOf(contentType);
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
    await respond(deps, { rpc, record, call, format, assertOpen: deadline.assertOpen });
  } catch (error) {
    refuse(deps, record, error);
  } finally {
    deadline.stop();
  }
}

type Admitted = {
  rpc: Rpc;
  record: RequestRecord;
  call: Call;
  format: MessageFormat;
  /** Throws once the deadline has passed. */
  assertOpen: () => void;
};

async function respond(deps: UnaryDeps, { rpc, record, call, format, assertOpen }: Admitted): Promise<void> {
  const { interceptors, holdFor, holdResponse } = deps;
  const hold = holdFor({ res: record.res, call });
  const { message, isGzip, nextItem } = await readBodyMessage(record.req, format, rpc, hold);
  call.nextItem = nextItem;
  assertOpen();
  rpc.check(message);
  const response = messageOf(await interceptors.invoke(call, message));
  if (record.res.writableEnded) return;
  const { responseHeaders } = call;
  const rateHeaders = interceptors.rateHeaders(call);
  const { jsonOptions } = rpc;
  const success = { record, responseHeaders, format, isGzip, rateHeaders, jsonOptions };
  const answer = await successResponse(success, rpc.method.output, response);
  holdResponse(record, answer.body?.length ?? 0);
  writeRpcResponse(record, answer);
}

/** Rejects a request, in the form of its protocol, unless it has a response. */
export function refuse({ interceptors, log }: UnaryDeps, record: RequestRecord, thrown: unknown): void {
  const { call, res, requestId } = record;
  if (thrown instanceof ClientGone) return;
  const error = asConnectError(log, record, thrown);
  if (res.writableEnded) return;
  if (res.headersSent) return void res.destroy();
  try {
    const rateHeaders = call === undefined ? [] : interceptors.rateHeaders(call);
    for (let i = 0; i < rateHeaders.length; i += 2) {
      error.metadata.set(rateHeaders[i] as string, rateHeaders[i + 1] as string);
    }
    for (const [name, value] of call?.responseHeaders ?? []) error.metadata.set(name, value);
    error.metadata.set('x-request-id', requestId);
    writeRpcResponse(record, errorResponse(record, error));
  } catch (failure) {
    // A header of the call is invalid in HTTP: respond without them.
    log.error({ err: failure, request_id: requestId }, 'a call failed');
    const internal = toConnectError(internalError(requestId, failure), requestId);
    writeRpcResponse(record, errorResponse(record, internal));
  }
}

/** The error for the caller, recorded. One of Connect's library breaks the protocol. */
function asConnectError(log: Logger, record: RequestRecord, thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) {
    record.error = ErrorCode.REQUEST_INVALID;
    return thrown;
  }
  const error = asApiError(log, thrown, record);
  record.error = error.code;
  return toConnectError(error, record.requestId);
}
