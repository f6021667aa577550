// A process that creates submissions at a steady rate, looks at some of them until they are witnessed, and prints how
// long that took from the 201 on.
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { quantile } from '../rounds.js';
import { CONNECTIONS } from './load.js';

export type PacedLoad = {
  baseUrl: string;
  apiKey: string;
  perSecond: number;
  warmUpSeconds: number;
  seconds: number;
  /** How many submissions to look at, spread evenly over the time. */
  samples: number;
};

export type PacedResult = {
  /** Acknowledged a second while it ran. */
  perSecond: number;
  failed: number;
  createP50Ms: number;
  createP99Ms: number;
  samples: number;
  /** From the 201 to the first look that found it witnessed. */
  medianMs: number;
  p95Ms: number;
  maxMs: number;
};

const TICK_MS = 5;
const LOOK_EVERY_MS = 50;
/** Beyond this the server is behind by seconds, and more would only grow its queue. */
const MAX_UNDER_WAY = 4_000;

const load = JSON.parse(process.argv[2] ?? '') as PacedLoad;
const writers = new Pool(load.baseUrl, { connections: CONNECTIONS });
const readers = new Pool(load.baseUrl, { connections: 8 });
const authorization = `Bearer ${load.apiKey}`;
const run = randomBytes(24).toString('hex');
const createMs: number[] = [];
const witnessedMs: number[] = [];
const looks: Promise<void>[] = [];
let count = 0;
let underWay = 0;
let failed = 0;

await sendFor(load.warmUpSeconds, Number.POSITIVE_INFINITY);
createMs.length = 0;
failed = 0;
const startedMs = performance.now();
await sendFor(load.seconds, Math.ceil((load.perSecond * load.seconds) / load.samples));
const seconds = (performance.now() - startedMs) / 1000;
await Promise.all(looks);
const result: PacedResult = {
  perSecond: createMs.length / seconds,
  failed,
  createP50Ms: quantile(createMs, 0.5) ?? 0,
  createP99Ms: quantile(createMs, 0.99) ?? 0,
  samples: witnessedMs.length,
  medianMs: quantile(witnessedMs, 0.5) ?? 0,
  p95Ms: quantile(witnessedMs, 0.95) ?? 0,
  maxMs: quantile(witnessedMs, 1) ?? 0,
};
await Promise.all([writers.destroy(), readers.destroy()]);
console.log(JSON.stringify(result));

/** Sends at the wanted rate, looks at every `lookEvery`th, and waits until all are answered. */
async function sendFor(forSeconds: number, lookEvery: number): Promise<void> {
  const beganMs = performance.now();
  const sent: Promise<void>[] = [];
  for (let passedMs = 0; passedMs < forSeconds * 1000; passedMs = performance.now() - beganMs) {
    const due = Math.floor((passedMs / 1000) * load.perSecond);
    while (sent.length < due && underWay < MAX_UNDER_WAY) sent.push(send(sent.length % lookEvery === 1));
    await delay(TICK_MS);
  }
  await Promise.all(sent);
}

async function send(isLookedAt: boolean): Promise<void> {
  count++;
  underWay++;
  const sha256 = run + count.toString(16).padStart(16, '0');
  const metadata = { schema: 'purl', purl: 'pkg:npm/%40scope/name@1.2.3?arch=x64', run: count };
  const startedAtMs = performance.now();
  try {
    const { statusCode, body } = await writers.request({
      method: 'POST',
      path: '/v1/attestations',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ artifact: { sha256 }, metadata }),
    });
    const text = await body.text();
    if (statusCode !== 201) throw new Error(text);
    createMs.push(performance.now() - startedAtMs);
    if (isLookedAt) looks.push(lookUntilWitnessed((JSON.parse(text) as { id: string }).id));
  } catch {
    failed++;
  } finally {
    underWay--;
  }
}

async function lookUntilWitnessed(id: string): Promise<void> {
  const acknowledgedMs = performance.now();
  for (;;) {
    await delay(LOOK_EVERY_MS);
    const { body } = await readers.request({
      method: 'GET',
      path: `/v1/attestations/${id}`,
      headers: { authorization },
    });
    const { status } = (await body.json()) as { status: string };
    if (status === 'witnessed') break;
  }
  witnessedMs.push(performance.now() - acknowledgedMs);
}
