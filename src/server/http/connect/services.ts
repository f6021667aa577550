import type { DescMethodUnary, Message } from '@bufbuild/protobuf';
import { toBinary } from '@bufbuild/protobuf';
import type { ConnectRouter, HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { compressionGzip } from '@connectrpc/connect-node';
import type { FastifyInstance } from 'fastify';
import { messageOf } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import { untilAborted } from '../../core/until-aborted.js';
import { closeSignal, newCall } from '../call/new-call.js';
import { type ServiceEntry, unaryMethods } from '../services.js';
import type { Limits } from '../socket/limits.js';
import type { NodeRequest, RequestRecord } from '../socket/requests.js';
import { setHeaders } from '../socket/write-response.js';
import { MAX_TIMER_MS } from './deadline.js';
import { type LibraryDeps, recordOf, registerLibrary } from './library.js';
import type { JsonOptions } from './messages.js';
import { refuseMethod } from './refusal.js';
import { compileRpc, type Rpc, refuse, serveUnary, type UnaryDeps } from './unary.js';

type ServicesDeps = LibraryDeps &
  UnaryDeps & {
    services: readonly ServiceEntry[];
    limits: Limits;
    /** How ProtoJSON is read and written. What is unknown is rejected by default: a misspelled filter must not list everything. */
    jsonOptions?: JsonOptions;
  };

/**
 * Registers the services on Connect's router. POST, the method of nearly every call, is served by `serveUnary`, GET by
 * the library; of both the key is checked before anything is read.
 */
export function registerServices(app: FastifyInstance, deps: ServicesDeps): void {
  const { services, getRecord, jsonOptions = { ignoreUnknownFields: false } } = deps;
  const { maxBodyBytes } = deps.limits;
  const rpcs = new Map(
    unaryMethods(services).map((method) => [pathOf(method), compileRpc(method, maxBodyBytes, jsonOptions)]),
  );
  for (const rpc of rpcs.values()) assertCountless(rpc);
  app.register(async (scope) => {
    scope.addHook('onRequest', (request, reply, next) => {
      const rpc = rpcs.get(request.routeOptions.url ?? '') as Rpc;
      const record = getRecord(request);
      if (request.method === 'POST') {
        reply.hijack();
        void serveUnary(deps, rpc, record);
        return;
      }
      void admit(deps, rpc, record).then((isAdmitted) => {
        if (isAdmitted) next();
        else reply.hijack();
      });
    });
    const routes = (router: ConnectRouter) => {
      for (const { desc } of services) router.service(desc, implementation(deps, desc.methods, rpcs));
    };
    await registerLibrary(scope, deps, routes, {
      readMaxBytes: maxBodyBytes,
      acceptCompression: [compressionGzip],
      jsonOptions,
    });
  });
}

/** Throws if an RPC that may be called by GET takes values that have to be counted: the library counts none. */
function assertCountless({ method, httpMethods, checkValues }: Rpc): void {
  if (httpMethods.includes('GET') && checkValues !== undefined) {
    throw new Error(`${method.parent.typeName}.${method.name} has no side effects, but takes a Struct`);
  }
}

function pathOf({ parent, name }: Pick<DescMethodUnary, 'parent' | 'name'>): string {
  return `/${parent.typeName}/${name}`;
}

/**
 * Admits a request that the library is to serve, and makes its call; resolves to false if it was refused, for its method
 * too. Never rejects.
 */
async function admit(deps: ServicesDeps, rpc: Rpc, record: RequestRecord): Promise<boolean> {
  const { interceptors, limits } = deps;
  const { req, res } = record;
  if (!rpc.httpMethods.includes(req.method ?? '')) {
    await interceptors.countUnrouted(record);
    refuseMethod(rpc.httpMethods, record);
    return false;
  }
  record.protocol = 'connect';
  record.call = newCall(rpc, record, closeSignal(res));
  setDeadline(req, limits);
  try {
    const admitted = interceptors.admit(record.call);
    if (admitted instanceof ApiError) throw admitted;
    await admitted;
    setHeaders(res, interceptors.rateHeaders(record.call));
    return true;
  } catch (error) {
    refuse(deps, record, error);
    return false;
  }
}

/**
 * Gives a request without a deadline, or with one that is longer than any timer, that of the server: the library responds
 * when it has passed, and would not know of a response by another.
 */
function setDeadline({ headers }: NodeRequest, { responseTimeoutMs }: Limits): void {
  const given = headers['connect-timeout-ms'];
  if (given === undefined || Number(given) > MAX_TIMER_MS) {
    headers['connect-timeout-ms'] = String(responseTimeoutMs);
  }
}

/** The handlers of a service as Connect's router takes them: for the call that is admitted already. */
function implementation(
  deps: ServicesDeps,
  methods: ServiceEntry['desc']['methods'],
  rpcs: ReadonlyMap<string, Rpc>,
): Partial<ServiceImpl<ServiceEntry['desc']>> {
  const handlers = methods.map((method) => {
    const rpc = rpcs.get(pathOf(method as DescMethodUnary)) as Rpc;
    return [
      method.localName,
      (message: Message, context: HandlerContext) => get(deps, rpc, message, context),
    ];
  });
  return Object.fromEntries(handlers);
}

async function get(
  { interceptors, holdResponse }: UnaryDeps,
  { method, check }: Rpc,
  message: Message,
  { values, responseHeader, signal }: HandlerContext,
): Promise<Message> {
  const record = recordOf({ contextValues: values });
  if (record.call === undefined) throw new Error(`${method.name} was called without being admitted`);
  const call = { ...record.call, signal: () => signal };
  record.call = call;
  check(message);
  // The library only aborts the signal: a handler that does not look at it would keep the caller waiting.
  const response = messageOf(await untilAborted(interceptors.invoke(call, message), signal));
  for (const [name, value] of call.responseHeaders) responseHeader.set(name, value);
  // A private cache may keep it and revalidates it before each use.
  responseHeader.set('cache-control', 'private, no-cache');
  const vary = record.res.getHeader('vary');
  responseHeader.set('vary', vary === undefined ? 'accept-encoding' : `${vary}, accept-encoding`);
  holdResponse(record, toBinary(method.output, response).length);
  return response;
}
