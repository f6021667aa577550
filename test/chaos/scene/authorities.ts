/** Two RFC 3161 authorities, openssl's and the embedded one, that fail in each way that such a server can. */
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { ShutdownHooks } from '../../../src/server/core/shutdown.js';
import { certificatePem } from '../../../src/server/timestamp-authority/authority-file.js';
import { openTimestampAuthority } from '../../../src/server/timestamp-authority/timestamp-authority.js';
import { makeOpensslTsa, serve } from '../../support/witnesses/openssl-tsa.js';

/** `repeats` answers with a stamp that somebody else was given: in order, but over another digest and nonce. */
export type AuthorityMood = 'answers' | 'fails' | 'hangs' | 'is slow' | 'talks rubbish' | 'repeats';

export type Authority = { name: string; mood: AuthorityMood; setting: Record<string, unknown> };

const SLOW_MS = 4_000;

/** Serves both until `hooks`; required witnesses of both environments. */
export async function openAuthorities(dir: string, hooks: ShutdownHooks): Promise<Authority[]> {
  const dirs = ['openssl', 'embedded'].map((name) => join(dir, `authority-${name}`));
  for (const each of dirs) mkdirSync(each, { recursive: true });
  const foreign = await makeOpensslTsa({ dir: dirs[0]!, curve: 'P-256', signerDigest: 'sha256' });
  const own = await openTimestampAuthority({ dir: dirs[1]!, clock: () => new Date(), randomBytes });
  const foreignChain = foreign.chain.map((der) => certificatePem(der));
  return Promise.all([
    openAuthority('foreign', (query) => foreign.reply(query), foreignChain, hooks),
    openAuthority('own', (query) => own.respond(query), own.certChainPem, hooks),
  ]);
}

type Reply = (query: Uint8Array) => Promise<Uint8Array>;

async function openAuthority(
  name: string,
  reply: Reply,
  chain: string[],
  hooks: ShutdownHooks,
): Promise<Authority> {
  const earlier: { answer?: Uint8Array } = {};
  const server = await serve(async (request, response) => {
    try {
      const query = await buffer(request);
      await answer(authority.mood, () => reply(query), response, earlier);
    } catch {
      response.destroy();
    }
  });
  hooks.add(server.close);
  const setting = { name, kind: 'rfc3161', url: server.url, chain_pem: chain.join(''), required: true };
  const authority: Authority = { name, mood: 'answers', setting };
  return authority;
}

async function answer(
  mood: AuthorityMood,
  reply: () => Promise<Uint8Array>,
  response: ServerResponse,
  earlier: { answer?: Uint8Array },
): Promise<void> {
  if (mood === 'hangs') return;
  if (mood === 'fails') {
    response.writeHead(503).end();
    return;
  }
  response.setHeader('content-type', 'application/timestamp-reply');
  if (mood === 'talks rubbish') {
    response.end(randomBytes(900));
    return;
  }
  if (mood === 'is slow') await new Promise((resolve) => setTimeout(resolve, SLOW_MS).unref());
  const fresh = mood === 'repeats' ? earlier.answer : undefined;
  const bytes = fresh ?? (await reply());
  earlier.answer ??= bytes;
  response.end(bytes);
}
