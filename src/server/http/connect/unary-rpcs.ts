import type { DescMethodUnary } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { Logger } from '../../core/logger.js';
import { boundBy, findBound } from '../../json/bound.js';
import { compileCount } from '../../json/count-values.js';
import type { Interceptors } from '../call/interceptors.js';
import { closeSignal, newCall } from '../call/new-call.js';
import { decodePercent } from '../rest/percent.js';
import { type ServiceEntry, unaryMethods } from '../services.js';
import type { Holder } from '../socket/memory.js';
import type { HoldBytes } from '../socket/read-body.js';
import { pathOf, type RequestRecord } from '../socket/requests.js';
import { type MessageRules, protocolOf, readMessage } from './read-message.js';

import { refuseCall } from './refusal.js';

export type UnaryRpcDeps = {
  services: readonly ServiceEntry[];
  interceptors: Interceptors;
  log: Logger;
  /** Of the message of any call; less where its own can need less. */
  maxBodyBytes: number;
  /** Counts the bytes of bodies while they are held. */
  holdFor: (holder: Holder) => HoldBytes;
  /** Routes a request: one that is no unary RPC, or whose call is admitted and its message read. */
  serve: (record: RequestRecord) => void;
};

/** What is known of an RPC before its message is read. */
type Rpc = MessageRules & { method: DescMethodUnary; httpMethods: ReadonlySet<string> };

/**
 * The unary calls of Connect, gRPC and gRPC-Web, up to their message: the headers are looked at first, and only for a
 * caller who may call a body is read, inflated and bounded. What remains is a message of known size, which Connect
 * parses.
 *
 * @returns what takes every request that is not for REST
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
  };
}

async function receive(deps: UnaryRpcDeps, rpc: Rpc, record: RequestRecord): Promise<void> {
  const { req, res } = record;
  record.protocol = protocolOf(req.headers['content-type']);
  const call = newCall(rpc.method, record, closeSignal(res));
  record.call = call;
  try {
    await deps.interceptors.admit(call);
    record.message = await readMessage(req, rpc, deps.holdFor({ res, apiKeyId: call.principal?.apiKeyId }));
    deps.serve(record);
  } catch (error) {
    refuseCall(deps, record, call, error);
  }
}
