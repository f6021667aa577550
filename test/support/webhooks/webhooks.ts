/** Projects, subscriptions and events of a test pipeline. */
import { randomBytes } from 'node:crypto';
import { ulid } from 'ulid';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { EventType } from '../../../gen/attestation/v1/webhooks_pb.js';
import { sequenceSubmissions } from '../../../src/server/attestations/sequence/sequence-submissions.js';
import { encryptSecret } from '../../../src/server/keys/encryption.js';
import { findDueJobs } from '../../../src/server/pipeline/reconcile.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import { makeProject } from '../../../src/server/process/first-keys.js';
import { formatSecret } from '../../../src/server/webhooks/delivery/sign.js';
import { listAttempts } from '../../../src/server/webhooks/store/webhook-attempts.js';
import { type DeliveryRow, listDeliveries } from '../../../src/server/webhooks/store/webhook-deliveries.js';
import { findWebhook, insertWebhook, type WebhookRow } from '../../../src/server/webhooks/store/webhooks.js';
import { drain, type TestPipeline } from '../pipeline.js';
import type { Received, Receiver } from './receiver.js';

export type TestWebhook = { id: string; secret: string; projectId: string; environment: number };

export type WebhookOptions = { projectId?: string; events?: number[]; environment?: number };

/** An endpoint that nobody listens at. */
export const NOBODY: Endpoint = { url: 'http://127.0.0.1:9/', trust: () => {} };

export type Endpoint = Pick<Receiver, 'url' | 'trust'>;

/** A subscription of a new project, or a given one's, whose endpoint is told the secret. */
export async function subscribe(
  { pool, pipeline }: TestPipeline,
  { url, trust }: Endpoint,
  options: WebhookOptions = {},
): Promise<TestWebhook> {
  const { events = [EventType.ATTESTATION_WITNESSED], environment = Environment.LIVE } = options;
  const projectId = options.projectId ?? (await makeProject(pool, 'a test'));
  const id = `whk_${ulid()}`;
  const secret = formatSecret(randomBytes(32));
  const stored = encryptSecret(pipeline.webhooks.keys, secret, id);
  await insertWebhook(pool, { id, projectId, environment, url, events, secret: stored }, 1_000);
  trust(secret);
  return { id, secret, projectId, environment };
}

/** Stores submissions of a project, with public statements if `isPublic`. @returns their ids */
export async function submitFor(
  test: TestPipeline,
  projectId: string,
  count: number,
  isPublic = false,
): Promise<string[]> {
  const rows = test.makeRows(count, { projectId, isPublic });
  await sequenceSubmissions(test.pool, test.logId, rows, false, 86_400_000);
  return rows.map(({ id }) => id);
}

/** Runs what is due up to the events, which are not sent. */
export async function notifyAll({ pipeline }: TestPipeline): Promise<void> {
  for (;;) {
    const due = (await findDueJobs(pipeline)).filter(({ stage }) => stage.case !== 'webhook');
    for (const job of due) await runJob(pipeline, job);
    if (due.every(({ stage }) => stage.case === 'settle')) return;
  }
}

/** Submits, and runs what is due until the batch is witnessed and its events were sent. @returns the submissions' ids */
export async function submitAndDrain(
  test: TestPipeline,
  projectId: string,
  count: number,
): Promise<string[]> {
  const ids = await submitFor(test, projectId, count);
  await drain(test.pipeline);
  return ids;
}

export async function webhookOf({ pool }: TestPipeline, webhook: TestWebhook): Promise<WebhookRow> {
  const row = await findWebhook(pool, webhook, webhook.id, { withDeleted: true });
  if (row === undefined) throw new Error('the subscription is missing');
  return row;
}

/** Its deliveries, oldest first. */
export async function deliveriesOf({ pool }: TestPipeline, { id }: TestWebhook): Promise<DeliveryRow[]> {
  const rows = await listDeliveries(pool, id, { status: undefined, before: undefined, limit: 10_000 });
  return rows.reverse();
}

/** What became of each, proto DeliveryStatus numbers. */
export async function statusesOf(test: TestPipeline, webhook: TestWebhook): Promise<number[]> {
  return (await deliveriesOf(test, webhook)).map(({ status }) => status);
}

/** The attempts of its only delivery. */
export async function attemptsOf(test: TestPipeline, webhook: TestWebhook) {
  const ids = (await deliveriesOf(test, webhook)).map(({ id }) => id);
  if (ids.length !== 1) throw new Error(`it has ${ids.length} deliveries`);
  return listAttempts(test.pool, ids);
}

/** How long until its deliveries are tried again, oldest first. */
export async function nextAttemptsMs({ pool }: TestPipeline, { id }: TestWebhook): Promise<number[]> {
  const rows = await pool<{ ms: number }[]>`
    SELECT (extract(epoch FROM next_attempt_at - clock_timestamp()) * 1000)::float8 AS ms FROM webhook_delivery
    WHERE webhook_id = ${id} ORDER BY id`;
  return rows.map(({ ms }) => ms);
}

/** The ids of the submissions that an endpoint has heard of, sorted. */
export function submissionsIn(received: readonly Received[]): string[] {
  return received.map(({ event }) => String(event.data.submission_id)).sort();
}
