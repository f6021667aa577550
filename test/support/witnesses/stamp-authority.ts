/** The embedded authority behind HTTP, which answers as the test says. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Test } from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { StampWitness } from '../../../src/server/attestations/stamps/stamp-witness.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { openTimestampAuthority } from '../../../src/server/timestamp-authority/timestamp-authority.js';
import { httpTimestampTransport, signatureStamps } from '../../../src/server/witnessing/clients/rfc3161.js';
import { ensureTimestampAuthority } from '../../../src/server/witnessing/store/timestamp-authorities.js';
import { serve } from './openssl-tsa.js';

/** Makes the answer to a query. */
export type Answer = (query: Uint8Array) => Promise<Uint8Array>;

export type StampAuthority = {
  /** How queries over signatures are answered, by `honest` until the test says otherwise. */
  answer: Answer;
  honest: Answer;
  /** How long an answer takes. */
  delayMs: number;
  /** Every query so far. */
  asked: number;
  chainPem: string;
  chain: Uint8Array[];
  /** The setting that makes it a witness that stamps signatures and need not stamp checkpoints. */
  setting(name: string, members?: Record<string, unknown>): Record<string, unknown>;
  /** The authority as a witness that stamps signatures. */
  witness(name: string, limits?: StampWitness['limits']): StampWitness;
  /** Stores it in trust roots, as the worker does, as if an hour ago. */
  trustIn(pool: Pool, name: string): Promise<void>;
};

/** Serves an authority with keys of its own until the test ends. */
export async function startStampAuthority(test: Pick<Test, 'teardown'>): Promise<StampAuthority> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-stamps-'));
  test.teardown(() => rm(dir, { recursive: true, force: true }));
  const authority = await openTimestampAuthority({ dir, clock: () => new Date(), randomBytes });
  const server = await serve(async (request, response) => {
    const query = await buffer(request);
    made.asked++;
    if (made.delayMs > 0) await delay(made.delayMs, undefined, { ref: false });
    const answer = await made.answer(query).catch(() => undefined);
    if (answer === undefined) response.writeHead(503).end();
    else response.writeHead(200, { 'content-type': 'application/timestamp-reply' }).end(answer);
  });
  test.teardown(server.close);
  const chainPem = authority.certChainPem.join('');
  const made: StampAuthority = {
    answer: authority.respond,
    honest: authority.respond,
    delayMs: 0,
    asked: 0,
    chainPem,
    chain: authority.certChain,
    setting: (name, members) => ({
      name,
      kind: 'rfc3161',
      url: server.url,
      chain_pem: chainPem,
      required: false,
      every: '30d',
      stamp_signatures: true,
      ...members,
    }),
    witness: (name, limits = { inFlight: 8, perSecond: 1_000 }) => {
      const { certChain, policyOid } = authority;
      const send = httpTimestampTransport({}, { url: server.url, timeoutMs: 10_000, maxBytes: 65_536 });
      const ask = signatureStamps({ send, randomBytes }, { chains: [certChain], policyOid });
      return { name, environments: [Environment.LIVE, Environment.TEST], ask, limits };
    },
    trustIn: async (pool, name) => {
      const certChainsPem = [authority.certChainPem];
      await ensureTimestampAuthority(pool, { name, url: '', operator: 'a test', certChainsPem });
      await pool`UPDATE timestamp_authority SET valid_from = valid_from - interval '1 hour' WHERE name = ${name}`;
    },
  };
  return made;
}
