/** A foreign time-stamping authority that does as the test says. */
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Test } from 'tap';
import { makeOpensslTsa, serve } from './openssl-tsa.js';

/** How it meets requests: `late` answers when `release` is called. */
export type Mood = 'answers' | 'fails' | 'late';

export type FaultTsa = {
  url: string;
  chainPem: string;
  mood: Mood;
  /** How many requests have come. */
  asked: number;
  /** Their headers. */
  headers: IncomingHttpHeaders[];
  /** How many of them wait for `release`. */
  waiting(): number;
  /** Answers every late request. */
  release(): void;
  /** The setting that makes it a witness. */
  setting(name: string, members?: Record<string, unknown>): Record<string, unknown>;
};

/** Serves openssl's authority until the test ends. */
export async function startFaultTsa(test: Test): Promise<FaultTsa> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-tsa-'));
  test.teardown(() => rm(dir, { recursive: true, force: true }));
  const tsa = await makeOpensslTsa({ dir, curve: 'P-256', signerDigest: 'sha256' });
  const waiting: (() => void)[] = [];
  const server = await serve(async (request, response) => {
    const query = await buffer(request);
    fault.asked++;
    fault.headers.push(request.headers);
    if (fault.mood === 'fails') {
      response.writeHead(503).end();
      return;
    }
    if (fault.mood === 'late') await new Promise<void>((resolve) => waiting.push(resolve));
    const reply = await tsa.reply(query);
    response.writeHead(200, { 'content-type': 'application/timestamp-reply' }).end(reply);
  });
  test.teardown(server.close);
  const chainPem = tsa.chain.map(toPem).join('');
  const fault: FaultTsa = {
    url: server.url,
    chainPem,
    mood: 'answers',
    asked: 0,
    headers: [],
    waiting: () => waiting.length,
    release: () => {
      for (const answer of waiting.splice(0)) answer();
    },
    setting: (name, members) => ({ name, kind: 'rfc3161', url: server.url, chain_pem: chainPem, ...members }),
  };
  return fault;
}

function toPem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
