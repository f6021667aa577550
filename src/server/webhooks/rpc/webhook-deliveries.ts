import { create, type Message } from '@bufbuild/protobuf';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import {
  DeliveryStatus,
  type ListWebhookDeliveriesRequest,
  ListWebhookDeliveriesRequestSchema,
  ListWebhookDeliveriesResponseSchema,
  type WebhookDelivery,
  WebhookSchema,
  type WebhookService,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { type Call, getPrincipal, type Handlers } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { RandomSource } from '../../core/random.js';
import type { Pool, Sql } from '../../database/connect.js';
import { type Change, changeOnce, type Idempotency } from '../../idempotency/idempotency.js';
import { webhookJob } from '../../jobs/job.js';
import { type SendJob, sendAfter } from '../../jobs/send-after.js';
import { dateOfTimestamp } from '../../json/well-known-types.js';
import type { Cursors } from '../../rpc/cursor.js';
import { pageReader } from '../../rpc/list-page.js';
import { listAttempts } from '../store/webhook-attempts.js';
import {
  countFailed,
  type DeliveryRow,
  findDelivery,
  insertTestDelivery,
  listDeliveries,
  redeliver,
  requestRedelivery,
} from '../store/webhook-deliveries.js';
import { getWebhook } from './get-webhook.js';
import { deliveryMessage, webhookMessage } from './webhook-messages.js';

/** Dependencies of the delivery handlers. `clock`: Unix milliseconds. */
export type DeliveryDeps = {
  pool: Pool;
  idempotency: Idempotency;
  cursors: Cursors;
  send: SendJob;
  /** The public address of the API. */
  baseUrl: () => string;
  clock: () => number;
  random: RandomSource;
};

type DeliveryMethod =
  | 'testWebhook'
  | 'listWebhookDeliveries'
  | 'getWebhookDelivery'
  | 'redeliverWebhookDelivery'
  | 'redeliverFailedWebhookDeliveries';

/** The number of failed deliveries is counted up to this: counting more would take longer than requeueing them. */
const MAX_COUNTED = 10_000;

const readPage = pageReader(ListWebhookDeliveriesRequestSchema);

/** The handlers of WebhookService about deliveries. */
export function deliveryHandlers(deps: DeliveryDeps): Pick<Handlers<typeof WebhookService>, DeliveryMethod> {
  const change = <M extends Message>(call: Call, request: Message & { id: string }, once: Change<M>) =>
    sendAfter(deps.send, webhookJob(request.id), changeOnce(deps.idempotency, call, request, once));
  return {
    testWebhook: (request, call) =>
      change(call, request, {
        make: async (tx) => {
          const { id } = await getWebhook(tx, request.id, call);
          const deliveryId = `dlv_${deps.random.ulid(deps.clock())}`;
          await insertTestDelivery(tx, id, deliveryId);
          return deliveryId;
        },
        show: (sql, deliveryId) => showDelivery(deps, sql, { ...request, deliveryId }, call),
      }),
    listWebhookDeliveries: (request, call) => list(deps, request, call),
    getWebhookDelivery: (request, call) => showDelivery(deps, deps.pool, request, call),
    redeliverWebhookDelivery: (request, call) =>
      change(call, request, {
        make: async (tx) => {
          const { id } = await getWebhook(tx, request.id, call);
          if (!(await redeliver(tx, id, request.deliveryId))) throw notFound();
          return request.deliveryId;
        },
        show: (sql) => showDelivery(deps, sql, request, call),
      }),
    redeliverFailedWebhookDeliveries: (request, call) => {
      const { since } = request;
      if (since === undefined) throw new Error('the request was not validated');
      return change(call, request, {
        make: async (tx) => {
          const { id } = await getWebhook(tx, request.id, call);
          await requestRedelivery(tx, id, dateOfTimestamp(since));
          return id;
        },
        show: async (sql, id) => {
          const message = webhookMessage(await getWebhook(sql, id, call), deps.clock());
          const redelivering = await countFailed(sql, id, dateOfTimestamp(since), MAX_COUNTED);
          return create(WebhookSchema, { ...message, redelivering });
        },
      });
    },
  };
}

async function list(deps: DeliveryDeps, request: ListWebhookDeliveriesRequest, call: Call) {
  const { id } = await getWebhook(deps.pool, request.id, call);
  const status = request.status === DeliveryStatus.UNSPECIFIED ? undefined : request.status;
  const submissionId = request.submissionId === '' ? undefined : request.submissionId;
  const { rows, nextCursor } = await readPage(deps.cursors, request, {
    query: ['deliveries', getPrincipal(call).projectId, id, status, submissionId],
    read: (before, limit) =>
      listDeliveries(deps.pool, id, { status, submissionId, before: before?.[0], limit }),
    positionOf: (row) => [row.id],
  });
  const ids = rows.map((row) => row.id);
  const attempts = await listAttempts(deps.pool, ids, 1);
  const attemptsOf = (row: DeliveryRow) => attempts.filter(({ deliveryId }) => deliveryId === row.id);
  return create(ListWebhookDeliveriesResponseSchema, {
    data: rows.map((row) => deliveryMessage(row, attemptsOf(row), deps.baseUrl())),
    nextCursor,
  });
}

async function showDelivery(
  deps: DeliveryDeps,
  sql: Sql,
  { id: webhookId, deliveryId }: { id: string; deliveryId: string },
  call: Call,
): Promise<WebhookDelivery> {
  const { id } = await getWebhook(sql, webhookId, call);
  const row = await findDelivery(sql, id, deliveryId);
  if (row === undefined) throw notFound();
  const attempts = await listAttempts(sql, [deliveryId]);
  return deliveryMessage(row, attempts, deps.baseUrl(), { hasHeaders: true });
}

function notFound(): ApiError {
  return new ApiError(ErrorCode.DELIVERY_NOT_FOUND, 'the subscription has no delivery with this id');
}
