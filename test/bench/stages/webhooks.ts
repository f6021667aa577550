import { randomBytes } from 'node:crypto';
import { ulid } from 'ulid';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { EventType } from '../../../gen/attestation/v1/webhooks_pb.js';
import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { openSecrets } from '../../../src/server/embedded/secrets.js';
import { encryptSecret } from '../../../src/server/keys/encryption.js';
import { deriveKeyRing } from '../../../src/server/keys/key-ring.js';
import { formatSecret } from '../../../src/server/webhooks/delivery/sign.js';
import { insertWebhook } from '../../../src/server/webhooks/store/webhooks.js';
import { cpuPerUnit, readCpu } from '../cpu/cpu.js';
import type { Options } from '../options.js';
import { benchScript, runNode, startNode } from '../process.js';
import { type Contender, measureInTurns, type Sample, type Summary } from '../rounds.js';
import { openPool, type Services } from '../services.js';
import type { WebhookResult, WebhookTask } from './webhook-process.js';

/** Rates are deliveries a second; `cpuMicros` of the sending process for each. */
export type WebhooksMeasurement = {
  count: number;
  /** For each number of endpoints: the bare loop, then the service. */
  byEndpoints: { endpoints: number; summaries: Summary[] }[];
  /** Rows of deliveries made, without sending them. */
  fanOut: Summary[];
  workerMib: number | undefined;
};

const ENDPOINTS = [1, 200];
/** As many at a time as the service has for one endpoint, and in all. */
const WIDTH_OF_ONE = 32;
const WIDTH_OF_MANY = 1;
const BODY = JSON.stringify({
  id: 'evt_01M7YHFNQY053AXS3BXSBFPY8J',
  type: 'attestation.witnessed',
  created: '2026-01-02T03:04:05.678Z',
  data: {
    bundle_url: 'https://api.example.com/v1/attestations/sub_01M7YHFMXEAXWTBPYHVRDKJF2P/bundle',
    submission_id: 'sub_01M7YHFMXEAXWTBPYHVRDKJF2P',
  },
});
const UNLIMITED = 1_000_000_000;

/** Sending by one process, to one endpoint and to many, beside a bare loop that signs and posts the same bytes. */
export async function measureWebhooks(services: Services, options: Options): Promise<WebhooksMeasurement> {
  return withShutdownHooks(async (hooks) => {
    const pool = openPool(services.databaseUrl, hooks);
    await pool`
      UPDATE project SET webhook_deliveries_per_second = ${UNLIMITED}, webhook_deliveries_burst = ${UNLIMITED}`;
    const count = Math.min(options.deliveries, options.rows);
    let workerMib: number | undefined;
    const bareUrl = await services.createDatabase('bare_webhooks');
    const runTask = async (task: WebhookTask): Promise<Sample> => {
      const before = readCpu(services.pids);
      const result = await runNode<WebhookResult>([
        benchScript('stages/webhook-process'),
        JSON.stringify(task),
      ]);
      if (task.kind === 'send') workerMib = Math.max(workerMib ?? 0, result.peakMib ?? 0) || undefined;
      const cpuMicros = (result.cpuSeconds / count) * 1e6;
      const others = cpuPerUnit(before, readCpu(services.pids), count);
      return { perSecond: count / result.seconds, cpuMicros, cpu: { ...others, server: cpuMicros } };
    };
    const work = async (kind: 'send' | 'claim', webhookIds: string[]) => {
      await layRanges(pool, webhookIds, count);
      const { databaseUrl, dir } = services;
      return runTask({ kind, databaseUrl, dir, webhookIds, count });
    };
    const byEndpoints: WebhooksMeasurement['byEndpoints'] = [];
    let fanOut: Summary[] = [];
    for (const endpoints of ENDPOINTS) {
      const receiver = await startNode([benchScript('stages/webhook-receiver'), String(endpoints)]);
      hooks.add(receiver.stop);
      const urls = JSON.parse(receiver.ready) as string[];
      const webhookIds = await subscribe(pool, services, urls);
      const width = endpoints === 1 ? WIDTH_OF_ONE : WIDTH_OF_MANY;
      const contenders: Contender[] = [
        {
          name: 'bare undici loop, one row each',
          run: () => runTask({ kind: 'bare', urls, body: BODY, count, width, databaseUrl: bareUrl }),
        },
        {
          name: 'bare undici loop',
          run: () => runTask({ kind: 'bare', urls, body: BODY, count, width }),
        },
        { name: 'deliveries', run: () => work('send', webhookIds) },
      ];
      const summaries = await measureInTurns(contenders, { ...options, warmUpSeconds: 0 });
      await assertDelivered(pool);
      byEndpoints.push({ endpoints, summaries });
      if (endpoints > 1) continue;
      const claiming = { name: 'rows made', run: () => work('claim', webhookIds) };
      fanOut = await measureInTurns([claiming], { ...options, warmUpSeconds: 0 });
      await pool`DELETE FROM webhook_delivery WHERE status = 1`;
      await pool`UPDATE webhook SET leased_until = NULL`;
    }
    return { count, byEndpoints, fanOut, workerMib };
  });
}

/** Subscribes each URL to `attestation.witnessed` of live submissions; returns the subscriptions' ids. */
export async function subscribe(
  pool: Pool,
  { dir, projectId }: Services,
  urls: readonly string[],
): Promise<string[]> {
  const keys = deriveKeyRing((await openSecrets(dir)).secretKeys, 'encryption');
  const ids: string[] = [];
  for (const url of urls) {
    const id = `whk_${ulid()}`;
    const secret = encryptSecret(keys, formatSecret(randomBytes(32)), id);
    const events = [EventType.ATTESTATION_WITNESSED];
    await insertWebhook(
      pool,
      { id, projectId, environment: Environment.LIVE, url, events, secret },
      urls.length + 1,
    );
    ids.push(id);
  }
  return ids;
}

/** Gives each subscription its share of `count` events, as a batch that has settled does. */
export async function layRanges(pool: Pool, webhookIds: readonly string[], count: number): Promise<void> {
  const each = count / webhookIds.length;
  await pool`
    INSERT INTO webhook_range (webhook_id, log_id, tree_size, transition, next_index, last_index)
    SELECT id, b.log_id, b.tree_size, 2, 0, ${each - 1}
    FROM unnest(${[...webhookIds]}::text[]) id,
         (SELECT b.log_id, b.tree_size FROM batch b JOIN log l ON l.id = b.log_id AND l.environment = 1
          ORDER BY b.tree_size LIMIT 1) b`;
  await pool`
    UPDATE webhook SET due_at = clock_timestamp(), leased_until = NULL, failing_since = NULL
    WHERE id = ANY(${[...webhookIds]})`;
}

async function assertDelivered(pool: Pool): Promise<void> {
  const [row] = await pool<{ n: number }[]>`
    SELECT (SELECT count(*) FROM webhook_range) + (SELECT count(*) FROM webhook_delivery WHERE status <> 2) AS n`;
  if (row?.n !== 0) throw new Error(`${row?.n} events were not delivered`);
}
