import type { Logger } from '../logger.js';
import type { Interceptors } from './interceptors.js';
import type { RequestRecord } from './requests.js';
import { createRestHandler } from './rest/handler.js';
import type { ServiceEntry } from './services.js';

export type RestSurfaceDeps = {
  services: readonly ServiceEntry[];
  interceptors: Interceptors;
  maxBodyBytes: number;
  log: Logger;
};

/** The REST surface as a function of a request's record, which is told what becomes of the request. */
export function restSurface({
  log,
  interceptors,
  ...deps
}: RestSurfaceDeps): (record: RequestRecord) => void {
  const onInternalError = (error: unknown, requestId: string) =>
    log.error({ err: error, request_id: requestId }, 'a call failed');
  const { handle } = createRestHandler({ ...deps, ...interceptors, onInternalError });
  return (record) => {
    record.surface = 'rest';
    void handle(record);
  };
}
