/** Timeouts of the SDK's requests, and the allowed addresses of a customer's host. */
import http from 'node:http';
import https from 'node:https';
import { type GuardOptions, guardedAgents } from '../../../net/destination.js';

const CONNECT_TIMEOUT_MS = 10_000;
/** Stall timeout of a request. */
export const STALL_TIMEOUT_MS = 30_000;

const silent = () => undefined;

/** Options of every client of the SDK: by default it would print warnings to the console. */
export type NetworkLimits = ReturnType<typeof networkLimits>;

/** Limits for requests to AWS, or with `guard` to a host that a customer names. */
export function networkLimits(stallTimeoutMs: number, guard?: GuardOptions) {
  const agents =
    guard === undefined
      ? { httpAgent: new http.Agent({ keepAlive: true }), httpsAgent: new https.Agent({ keepAlive: true }) }
      : guardedAgents(guard);
  return {
    requestHandler: { ...agents, connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: stallTimeoutMs },
    logger: { trace: silent, debug: silent, info: silent, warn: silent, error: silent },
  };
}
