// A process that sends what subscriptions have due, or posts as many of the same bytes in a bare loop, or only makes
// the rows of deliveries, and prints what it took.
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { takeCoverage } from 'node:v8';
import { Agent } from 'undici';
import { createLogger } from '../../../src/server/core/logger.js';
import { createShutdownHooks } from '../../../src/server/core/shutdown.js';
import { connectPool } from '../../../src/server/database/connect.js';
import { openSecrets } from '../../../src/server/embedded/secrets.js';
import { openStandby } from '../../../src/server/process/standby.js';
import { openWebhooks } from '../../../src/server/process/worker/webhook-sending.js';
import { deliver } from '../../../src/server/webhooks/delivery/deliver.js';
import { signatureHeaders } from '../../../src/server/webhooks/delivery/sign.js';
import type { Webhooks } from '../../../src/server/webhooks/delivery/webhook-stage.js';
import { claimDeliveries } from '../../../src/server/webhooks/store/webhook-deliveries.js';
import { leaseWebhook } from '../../../src/server/webhooks/store/webhook-leases.js';
import { peakMib } from '../process.js';

/** What the process did and used. */
export type WebhookResult = { seconds: number; cpuSeconds: number; peakMib: number | undefined };

/** `bare` posts; the others work for subscriptions. */
export type WebhookTask =
  | { kind: 'bare'; urls: string[]; body: string; count: number; width: number; databaseUrl?: string }
  | { kind: 'send' | 'claim'; databaseUrl: string; dir: string; webhookIds: string[]; count: number };

const CLAIM_ROWS = 32;
/** Connections, as many as a service process has. */
const RECORDING = 10;
const LEASE_MS = 600_000;

const task = JSON.parse(process.argv[2] ?? '') as WebhookTask;
const before = process.cpuUsage();
const startedMs = performance.now();
if (task.kind === 'bare') await postAll(task);
else await work(task);
const { user, system } = process.cpuUsage(before);
const seconds = (performance.now() - startedMs) / 1000;
console.log(
  JSON.stringify({
    seconds,
    cpuSeconds: (user + system) / 1e6,
    peakMib: peakMib(process.pid),
  } satisfies WebhookResult),
);
process.exit(0);

/** Signs and posts, so many at a time for each endpoint, and records each in a row, given a database. */
async function postAll(task: Extract<WebhookTask, { kind: 'bare' }>): Promise<void> {
  const { urls, body, count, width, databaseUrl } = task;
  const agent = new Agent();
  const record = databaseUrl === undefined ? async () => {} : await openRecords(databaseUrl);
  const keys = [randomBytes(32)];
  let left = count;
  const loop = async (url: string) => {
    const { origin, pathname: path } = new URL(url);
    while (left-- > 0) {
      const signed = signatureHeaders(keys, { id: 'evt_01M7YHFNQY053AXS3BXSBFPY8J', timestamp: 1, body });
      const headers = { 'content-type': 'application/json', 'user-agent': 'bench', ...signed };
      const answer = await agent.request({ origin, path, method: 'POST', headers, body });
      await answer.body.dump();
      await record(answer.statusCode);
    }
  };
  await Promise.all(urls.flatMap((url) => Array.from({ length: width }, () => loop(url))));
}

/** One durable row a delivery, with what the service keeps of each: time, status, duration and the answer's start. */
async function openRecords(url: string): Promise<(status: number) => Promise<unknown>> {
  const pool = connectPool({ url, name: 'bare', max: RECORDING, statementTimeoutMs: 10_000 });
  await pool`CREATE TABLE IF NOT EXISTS bare_delivery (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), status int, duration_ms int,
    body text)`;
  return (status) => pool`INSERT INTO bare_delivery (status, duration_ms, body) VALUES (${status}, 1, '')`;
}

async function work(wanted: Exclude<WebhookTask, { kind: 'bare' }>): Promise<void> {
  const { databaseUrl, dir } = wanted;
  const log = createLogger({ level: 'warn', fd: 2 });
  const { webhooks } = openWebhooks({
    ...openStandby({ databaseUrl, log }, createShutdownHooks()),
    config: { databaseUrl, secrets: await openSecrets(dir), allowInsecureDestinations: true },
    baseUrl: () => 'https://api.example.com',
    log,
    observeAttempts: () => {},
  });
  if (wanted.kind === 'send') await beUp(webhooks);
  const sendAll = async (id: string) => {
    for (let outcome = await deliver({ webhooks }, id); outcome.type === 'retry'; ) {
      await delay(outcome.delayMs);
      outcome = await deliver({ webhooks }, id);
    }
  };
  const claimAll = async (webhookId: string) => {
    const { lease = 0 } = (await leaseWebhook(webhooks.pool, webhookId, LEASE_MS)) ?? {};
    for (let rows = CLAIM_ROWS; rows === CLAIM_ROWS; ) {
      const ids = Array.from({ length: CLAIM_ROWS }, webhooks.newDeliveryId);
      const claim = { webhookId, lease, leaseMs: LEASE_MS, visibleMs: LEASE_MS, ids };
      rows = (await claimDeliveries(webhooks.pool, claim)).length;
    }
  };
  await Promise.all(wanted.webhookIds.map(wanted.kind === 'send' ? sendAll : claimAll));
}

/** Opens the connections to the database, so that `--only files` counts a delivery of a process that is up. */
async function beUp({ pool }: Webhooks): Promise<void> {
  await Promise.all(Array.from({ length: pool.options.max }, () => pool`SELECT pg_sleep(0.05)`));
  takeCoverage();
}
