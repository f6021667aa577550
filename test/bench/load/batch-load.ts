// A process that creates submissions for a while, many in a call, over a few connections, and prints what became of it.
import { randomBytes } from 'node:crypto';
import { Pool } from 'undici';
import { quantile } from '../rounds.js';
import type { LoadResult } from './load.js';

/** What to send; given as the only argument, in JSON. */
export type BatchLoad = {
  baseUrl: string;
  apiKey: string;
  seconds: number;
  connections: number;
  /** In each call. */
  items: number;
  keyed: boolean;
};

const load = JSON.parse(process.argv[2] ?? '') as BatchLoad;
const headers = { authorization: `Bearer ${load.apiKey}`, 'content-type': 'application/json' };
const run = randomBytes(24).toString('hex');
const latencies: number[] = [];
let count = 0;
let created = 0;

const startedMs = performance.now();
const endMs = startedMs + load.seconds * 1000;
const pool = new Pool(load.baseUrl, { connections: load.connections });
await Promise.all(Array.from({ length: load.connections }, callUntilEnd));
const result: LoadResult = {
  requests: count,
  seconds: (performance.now() - startedMs) / 1000,
  p50Ms: quantile(latencies, 0.5) ?? 0,
  p99Ms: quantile(latencies, 0.99) ?? 0,
  maxMs: quantile(latencies, 1) ?? 0,
  failed: count - created,
};
await pool.close();
console.log(JSON.stringify(result));

async function callUntilEnd(): Promise<void> {
  while (performance.now() < endMs) {
    const body = nextBody();
    const startedAt = performance.now();
    const answer = await pool.request({ path: '/v1/attestations:batch', method: 'POST', headers, body });
    const text = Buffer.from(await answer.body.arrayBuffer());
    const made = readCreated(text);
    if (made < load.items)
      console.error(`${answer.statusCode}: ${text.subarray(0, 500)} ... ${text.subarray(-500)}`);
    created += made;
    latencies.push(performance.now() - startedAt);
  }
}

function nextBody(): string {
  const items: string[] = [];
  for (let i = 0; i < load.items; i++) {
    const sha256 = run + (++count).toString(16).padStart(16, '0');
    const metadata = `{"schema":"purl","purl":"pkg:npm/%40scope/name@1.2.3?arch=x64","run":${count}}`;
    const key = load.keyed ? `,"idempotency_key":"${sha256}"` : '';
    items.push(`{"artifact":{"sha256":"${sha256}"},"metadata":${metadata}${key}}`);
  }
  return `{"items":[${items.join(',')}]}`;
}

/** How many were created, from the end of an answer: parsing all of it takes as long as making it. */
function readCreated(answer: Buffer): number {
  const end = answer.subarray(-100).toString();
  return Number(/"created":(\d+),/.exec(end)?.[1] ?? 0);
}
