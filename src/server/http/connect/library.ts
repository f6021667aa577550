import {
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type Interceptor,
} from '@connectrpc/connect';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from '../../core/logger.js';
import type { RequestRecord } from '../socket/requests.js';
import { asApiError, toConnectError } from './errors.js';

/** What Connect's library needs of the server. */
export type LibraryDeps = {
  getRecord: (request: FastifyRequest) => RequestRecord;
  log: Logger;
};

const RECORD = createContextKey<RequestRecord | undefined>(undefined);

/** The record of a request that Connect's library serves. */
export function recordOf({ contextValues }: { contextValues: HandlerContext['values'] }): RequestRecord {
  return contextValues.get(RECORD) as RequestRecord;
}

/** Serves services by Connect's library, on Connect, gRPC and gRPC-Web. */
export async function registerLibrary(
  scope: FastifyInstance,
  { getRecord, log }: LibraryDeps,
  routes: (router: ConnectRouter) => void,
  options: ConnectRouterOptions,
): Promise<void> {
  await scope.register(fastifyConnectPlugin, {
    ...options,
    routes,
    interceptors: [...(options.interceptors ?? []), explainErrors(log)],
    contextValues: (request) => {
      const record = getRecord(request);
      record.res.setHeader('x-request-id', record.requestId);
      return createContextValues().set(RECORD, record);
    },
  });
}

function explainErrors(log: Logger): Interceptor {
  return (next) => async (request) => {
    try {
      return await next(request);
    } catch (error) {
      throw asConnectError(log, recordOf(request), error);
    }
  };
}

/** The error for the caller, recorded. The request id is in the headers already. */
export function asConnectError(log: Logger, record: RequestRecord, thrown: unknown): unknown {
  if (record.res.destroyed) return thrown;
  if (thrown instanceof ConnectError && !record.call?.signal().aborted) return thrown;
  const error = asApiError(log, thrown, record);
  record.error = error.code;
  const connectError = toConnectError(error, record.requestId);
  connectError.metadata.delete('x-request-id');
  return connectError;
}
