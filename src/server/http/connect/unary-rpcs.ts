import type { DescMethodUnary } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { Logger } from '../../core/logger.js';
import { boundBy, findBound } from '../../json/bound.js';
import { compileCount } from '../../json/count-values.js';
import { findItemReader } from '../call/batch-items.js';
import type { Interceptors } from '../call/interceptors.js';
import { closeSignal, newCall } from '../call/new-call.js';
import { decodePercent } from '../rest/percent.js';
import { type ServiceEntry, unaryMethods } from '../services.js';
import type { Holder } from '../socket/memory.js';
import type { HoldBytes } from '../socket/read-body.js';
import { pathOf, type RequestRecord } from '../socket/requests.js';
import { type MessageRules, protocolOf, readMessage } from './read-message.js';

import { refuseCall } from './refusal.js';

type UnaryRpcDeps = {
  services: readonly ServiceEntry[];
  interceptors: Interceptors;
  log: Logger;
  /** Maximum of the message of any call; the bound of its own type may be lower. */
  maxBodyBytes: number;
  /** Counts the bytes of bodies until their requests are responded to. */
  holdFor: (holder: Holder) => HoldBytes;
  /** Routes a request that is no unary RPC, or whose call is admitted and whose message is read. */
  serve: (record: RequestRecord) => void;
};

/** An RPC, compiled. */
type Rpc = MessageRules & { method: DescMethodUnary; httpMethods: ReadonlySet<string> };

/**
 * Admits the unary calls of Connect, gRPC and gRPC-Web and reads their messages. Headers are checked first: only for an
 * admitted call is a body read and decompressed, within its bound. Connect then parses a message of known size.
 *
 * @returns the handler of every request that is not for REST
 */
export function createUnaryRpcs(deps: UnaryRpcDeps): (record: RequestRecord) => void {
  const rpcs = new Map(
    unaryMethods(deps.services).map((method) => [
      `/${method.parent.typeName}/${method.name}`,
      describe(method, deps.maxBodyBytes),
    ]),
  );
  return (record) => {
    const path = pathOf(record.req);
    const rpc = rpcs.get(path.includes('%') ? (decodePercent(path) ?? path) : path);
    if (rpc === undefined || !rpc.httpMethods.has(record.req.method ?? '')) deps.serve(record);
    else void receive(deps, rpc, record);
  };
}

function describe(method: DescMethodUnary, maxBodyBytes: number): Rpc {
  const isSafe = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  return {
    method,
    httpMethods: new Set(isSafe ? ['POST', 'GET'] : ['POST']),
    bound: boundBy(findBound(method.input), maxBodyBytes),
    hasMoreValues: compileCount(method.input),
    readItems: findItemReader(method),
  };
}

async function receive(deps: UnaryRpcDeps, rpc: Rpc, record: RequestRecord): Promise<void> {
  const { req, res } = record;
  record.protocol = protocolOf(req.headers['content-type']);
  const call = newCall(rpc.method, record, closeSignal(res));
  record.call = call;
  try {
    await deps.interceptors.admit(call);
    record.message = await readMessage(req, rpc, deps.holdFor({ res, call }), call);
    deps.serve(record);
  } catch (error) {
    refuseCall(deps, record, call, error);
  }
}
