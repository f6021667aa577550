import type { HandlerContext } from '@connectrpc/connect';
import type { Test } from 'tap';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { type ClientOptions, createClient } from '../../src/client/client.js';
import { serveRpc } from '../support/servers/rpc-server.js';

export const KEY = 'svc_test_key';
export const SHA256 = 'a'.repeat(64);
export const METADATA = { schema: 'purl', purl: 'pkg:generic/a' };
export const REQUEST = { artifact: { sha256: SHA256 }, metadata: METADATA };

/** A client whose pauses are recorded and take no time; time moves on by them. */
export function clientOf(baseUrl: string, options: Partial<ClientOptions> = {}) {
  const pauses: number[] = [];
  let now = Date.parse('2026-01-01T00:00:00Z');
  const client = createClient({
    baseUrl,
    apiKey: KEY,
    now: () => now,
    random: () => 0.5,
    delay: async (ms) => {
      pauses.push(ms);
      now += ms;
    },
    ...options,
  });
  return { client, pauses };
}

/** A server whose creates fail as told, in turn, and succeed from then on. */
export async function failing(t: Test, ...errors: Error[]) {
  const contexts: HandlerContext[] = [];
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      createAttestation: (request, context) => {
        contexts.push(context);
        const error = errors.shift();
        if (error) throw error;
        return { id: 'sub_1', artifact: request.artifact, metadata: request.metadata };
      },
    });
  });
  const keys = () => contexts.map(({ requestHeader }) => requestHeader.get('idempotency-key'));
  return { baseUrl, contexts, keys };
}

/** All items, once there are no more. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
