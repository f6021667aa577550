import type { Logger } from '../../core/logger.js';
import { deadlineExceeded } from '../call/failure.js';
import type { Interceptors } from '../call/interceptors.js';
import type { ServiceEntry } from '../services.js';
import type { RequestRecord } from '../socket/requests.js';
import { createRestHandler, type RestOptions } from './handler.js';

export type RestSurfaceDeps = {
  services: readonly ServiceEntry[];
  interceptors: Interceptors;
  maxBodyBytes: number;
  holdFor: RestOptions['holdFor'];
  holdAnswer: RestOptions['holdAnswer'];
  log: Logger;
};

/** The REST surface; a request's record is told what becomes of it. */
export type RestSurface = {
  serve: (record: RequestRecord) => void;
  /** Answers a request that has waited for too long with `service.deadline_exceeded`. */
  expire: (record: RequestRecord) => void;
};

/** The REST surface of the services; throws when their `google.api.http` options cannot be followed. */
export function restSurface({ log, interceptors, ...deps }: RestSurfaceDeps): RestSurface {
  const onInternalError = (error: unknown, requestId: string) =>
    log.error({ err: error, request_id: requestId }, 'a call failed');
  const { handle, refuse } = createRestHandler({ ...deps, ...interceptors, onInternalError });
  return {
    serve: (record) => {
      record.surface = 'rest';
      void handle(record);
    },
    expire: (record) => refuse(record, deadlineExceeded()),
  };
}
