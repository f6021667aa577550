/** The embedded authority behind HTTP, which answers as the test says. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Test } from 'tap';
import { openTimestampAuthority } from '../../../src/server/timestamp-authority/timestamp-authority.js';
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
  };
  return made;
}
