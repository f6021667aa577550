/** Projects, subscriptions and events of a test pipeline, and how time passes for them. */
import { createHmac, randomBytes } from 'node:crypto';
import { ulid } from 'ulid';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { EventType } from '../../gen/attestation/v1/webhooks_pb.js';
import { makeProject } from '../../src/app/keys.js';
import { encryptSecret } from '../../src/encryption.js';
import { acceptSubmissions } from '../../src/store/accept.js';
import { listAttempts } from '../../src/store/webhook-attempts.js';
import { type DeliveryRow, listDeliveries } from '../../src/store/webhook-deliveries.js';
import { findWebhook, insertWebhook, type WebhookRow } from '../../src/store/webhooks.js';
import { findSecretBytes, formatSecret } from '../../src/webhook/sign.js';
import { drain, type TestPipeline } from './pipeline.js';
import type { Received } from './receiver.js';

export type TestWebhook = { id: string; secret: string; projectId: string; environment: number };

export type WebhookOptions = { projectId?: string; events?: number[]; environment?: number };

/** A subscription of a new project, or a given one's. */
export async function subscribe(
  { pool, pipeline }: TestPipeline,
  url: string,
  options: WebhookOptions = {},
): Promise<TestWebhook> {
  const { events = [EventType.ATTESTATION_WITNESSED], environment = Environment.LIVE } = options;
  const projectId = options.projectId ?? (await makeProject(pool, 'a test'));
  const id = `whk_${ulid()}`;
  const secret = formatSecret(randomBytes(32));
  const stored = encryptSecret(pipeline.webhooks.keys, secret, id);
  await insertWebhook(pool, { id, projectId, environment, url, events, secret: stored }, 1_000);
  return { id, secret, projectId, environment };
}

/** Stores submissions of a project. @returns their ids */
export async function submitFor(test: TestPipeline, projectId: string, count: number): Promise<string[]> {
  const rows = test.makeRows(count, { projectId });
  await acceptSubmissions(test.pool, test.logId, rows, false, 86_400_000);
  return rows.map(({ id }) => id);
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

/** Lets time pass for subscriptions: everything that stands in their tables is older by so much. */
export async function letPass({ pool }: TestPipeline, ms: number): Promise<void> {
  const back = pool`${ms}::bigint * interval '1 millisecond'`;
  await pool`
    UPDATE webhook SET due_at = due_at - ${back}, leased_until = leased_until - ${back},
      failing_since = failing_since - ${back}, previous_secret_until = previous_secret_until - ${back},
      deleted_at = deleted_at - ${back}`;
  await pool`
    UPDATE webhook_delivery SET next_attempt_at = next_attempt_at - ${back}, created_at = created_at - ${back}`;
  await pool`UPDATE webhook_range SET created_at = created_at - ${back}`;
  await pool`UPDATE webhook_tokens SET at = at - ${back}`;
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

/** The attempts of its only delivery. */
export async function attemptsOf(test: TestPipeline, webhook: TestWebhook) {
  const ids = (await deliveriesOf(test, webhook)).map(({ id }) => id);
  if (ids.length !== 1) throw new Error(`it has ${ids.length} deliveries`);
  return listAttempts(test.pool, ids);
}

/** How long until its only delivery is tried again. */
export async function nextAttemptMs(test: TestPipeline, webhook: TestWebhook): Promise<number> {
  const [row] = await deliveriesOf(test, webhook);
  return (row?.nextAttemptAt.getTime() ?? Number.NaN) - Date.now();
}

/** The ids of the submissions that an endpoint has heard of, sorted. */
export function submissionsIn(received: readonly Received[]): string[] {
  return received.map(({ event }) => String(event.data.submission_id)).sort();
}

/** How many of a delivery's signatures are by this secret. */
export function signaturesBy(secret: string, { headers, body }: Received): number {
  const key = findSecretBytes(secret) ?? Buffer.alloc(0);
  const [t = '', ...given] = String(headers['service-signature']).split(',');
  const own = createHmac('sha256', key)
    .update(`${t.slice(2)}.${body}`)
    .digest('hex');
  return given.filter((signature) => signature === `v1=${own}`).length;
}
