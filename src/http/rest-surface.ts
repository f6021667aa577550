import type { Call } from '../call.js';
import { ApiError } from '../errors.js';
import type { Logger } from '../logger.js';
import type { Interceptors } from './interceptors.js';
import type { RequestRecord, Requests } from './requests.js';
import { createRestHandler } from './rest/handler.js';
import type { ServiceEntry } from './services.js';

export type RestSurfaceDeps = {
  services: readonly ServiceEntry[];
  interceptors: Interceptors;
  requests: Requests;
  newRequestId: () => string;
  maxBodyBytes: number;
  log: Logger;
};

/** The REST surface as a function of a request's record, which is told what becomes of the request. */
export function restSurface(deps: RestSurfaceDeps): (record: RequestRecord) => void {
  const { interceptors, requests, log } = deps;
  let entering: RequestRecord | undefined;
  const onInternalError = (error: unknown, requestId: string) =>
    log.error({ err: error, request_id: requestId }, 'a call failed');
  const { handle } = createRestHandler({
    services: deps.services,
    // The surface asks for its id while it is entered, so it gets the one the record has.
    newRequestId: () => entering?.requestId ?? deps.newRequestId(),
    admit: (call) => noted(requests, call, interceptors.admit(call)),
    invoke: (call, message) => noted(requests, call, interceptors.invoke(call, message)),
    maxBodyBytes: deps.maxBodyBytes,
    onInternalError,
  });
  return (record) => {
    record.surface = 'rest';
    entering = record;
    try {
      void handle(record.req, record.res);
    } finally {
      entering = undefined;
    }
  };
}

async function noted<T>(requests: Requests, call: Call, work: Promise<T>): Promise<T> {
  const record = requests.find(call.requestId);
  if (record !== undefined) record.call = call;
  try {
    return await work;
  } catch (error) {
    if (record !== undefined && error instanceof ApiError) record.error = error.code;
    throw error;
  }
}
