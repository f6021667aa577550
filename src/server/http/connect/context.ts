import { type ContextValues, createContextKey, createContextValues } from '@connectrpc/connect';
import type { RequestRecord } from '../socket/requests.js';

const recordKey = createContextKey<RequestRecord | undefined>(undefined);

/** Passes a request's record to Connect's handlers. */
export function connectContext(record: RequestRecord): ContextValues {
  return createContextValues().set(recordKey, record);
}

/** The record of an RPC's request. Throws if `connectContext` did not pass it. */
export function getRecord(values: ContextValues | undefined): RequestRecord {
  const record = values?.get(recordKey);
  if (record === undefined) throw new Error('a request reached Connect without its record');
  return record;
}
