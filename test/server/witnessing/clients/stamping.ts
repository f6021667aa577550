/** A checkpoint to stamp, and the transport of RFC 3161 to a test's own server. */
import type { Test } from 'tap';
import { Agent } from 'undici';
import { utf8 } from '../../../../src/proof/bytes/encoding.js';
import { httpTimestampTransport } from '../../../../src/server/witnessing/clients/rfc3161.js';

export const body = utf8('live.example.org\n7\nq83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=\n');
export const checkpoint = {
  origin: 'live.example.org',
  treeSize: 7,
  rootHash: 'abcdef1234567890abcdef1234567890abcdef1234567890abcdef1234567890',
  body,
  note: 'not looked at',
  coveredSize: 0,
  proveConsistency: () => Promise.reject(new Error('not looked at')),
};
export const never: AbortSignal = new AbortController().signal;
export const REPLY = { 'content-type': 'application/timestamp-reply' };

/** A dispatcher that goes with the test: open connections do not outlive it. */
export function dispatcherOf(t: Test): Agent {
  const dispatcher = new Agent();
  t.teardown(() => dispatcher.destroy());
  return dispatcher;
}

export function transport(t: Test, url: string, limits: { timeoutMs?: number; maxBytes?: number } = {}) {
  return httpTimestampTransport(
    { dispatcher: dispatcherOf(t) },
    { url, timeoutMs: 10_000, maxBytes: 65_536, ...limits },
  );
}
