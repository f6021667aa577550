// A process that sends one load with autocannon and prints what became of it: for machines without wrk.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Load, LoadResult } from './load.js';

/** The part of autocannon that is used here; it comes without types. */
type Request = { method: string; path: string; headers: Record<string, string>; body?: string };
type Autocannon = (options: {
  url: string;
  connections: number;
  duration: number;
  timeout: number;
  requests: { setupRequest: (request: object) => Request }[];
}) => Promise<{
  requests: { total: number };
  latency: { p50: number; p99: number; max: number };
  duration: number;
  errors: number;
  timeouts: number;
  non2xx: number;
}>;

const autocannon = createRequire(import.meta.url)('autocannon') as Autocannon;
const load = JSON.parse(process.argv[2] ?? '') as Load & { connections: number };

const result = await autocannon({
  url: load.baseUrl,
  connections: load.connections,
  duration: load.seconds,
  timeout: 10,
  requests: [{ setupRequest: requestMaker(load) }],
});
const answer: LoadResult = {
  requests: result.requests.total,
  seconds: result.duration,
  p50Ms: result.latency.p50,
  p99Ms: result.latency.p99,
  maxMs: result.latency.max,
  failed: result.errors + result.timeouts + result.non2xx,
};
console.log(JSON.stringify(answer));

function requestMaker(wanted: Load): (request: object) => Request {
  const headers = { authorization: `Bearer ${wanted.apiKey}` };
  if (wanted.method === 'get') {
    const paths = readFileSync(wanted.paths, 'utf8').trim().split('\n');
    const anyPath = () => paths[Math.floor(Math.random() * paths.length)] ?? '/';
    return (request) => ({ ...request, method: 'GET', path: anyPath(), headers });
  }
  const { path, keyed, rest } = wanted;
  const run = randomBytes(24).toString('hex');
  let count = 0;
  const keyHeader = (): Record<string, string> => (keyed ? { 'idempotency-key': `${run}${count}` } : {});
  return (request) => {
    count++;
    const sha256 = run + count.toString(16).padStart(16, '0');
    const artifact = `{"artifact":{"sha256":"${sha256}"},`;
    const metadata = { schema: 'purl', purl: 'pkg:npm/%40scope/name@1.2.3?arch=x64', run: count };
    return {
      ...request,
      method: 'POST',
      path,
      headers: { ...headers, 'content-type': 'application/json', ...keyHeader() },
      body: artifact + (rest ?? `"metadata":${JSON.stringify(metadata)}}`),
    };
  };
}
