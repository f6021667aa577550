import { create } from '@bufbuild/protobuf';
import { ErrorCode } from '../../gen/attestation/v1/errors_pb.js';
import {
  DeliveryStatus,
  ListWebhookDeliveriesRequestSchema,
  ListWebhookDeliveriesResponseSchema,
  type WebhookDelivery,
  type WebhookService,
} from '../../gen/attestation/v1/webhooks_pb.js';
import { type Call, getPrincipal, type Handlers } from '../call.js';
import { ApiError } from '../errors.js';
import { dateOfTimestamp } from '../json/timestamp.js';
import type { RandomSource } from '../random.js';
import type { Pool, Sql } from '../store/connect.js';
import { listAttempts } from '../store/webhook-attempts.js';
import {
  type DeliveryRow,
  findDelivery,
  insertTestDelivery,
  listDeliveries,
  redeliver,
  requestRedelivery,
} from '../store/webhook-deliveries.js';
import type { Cursors } from './cursor.js';
import { defaultLimit } from './default-limit.js';
import type { Idempotency } from './idempotent.js';
import { change, getWebhook } from './own-webhook.js';
import { deliveryMessage, webhookMessage } from './webhook-messages.js';

/** What the handlers work with. */
export type DeliveryDeps = {
  pool: Pool;
  idempotency: Idempotency;
  cursors: Cursors;
  /** The API's address as the world sees it. */
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

const DEFAULT_LIMIT = defaultLimit(ListWebhookDeliveriesRequestSchema);

/** Those handlers of WebhookService that are about deliveries. */
export function deliveryHandlers(deps: DeliveryDeps): Pick<Handlers<typeof WebhookService>, DeliveryMethod> {
  return {
    testWebhook: (request, call) =>
      change(deps.idempotency, call, request, {
        make: async (tx) => {
          const { id } = await getWebhook(tx, request.id, call);
          const made = `dlv_${deps.random.ulid(deps.clock())}`;
          await insertTestDelivery(tx, id, made);
          return made;
        },
        show: (sql, deliveryId) => showDelivery(deps, sql, { ...request, deliveryId }, call),
      }),
    listWebhookDeliveries: (request, call) => list(deps, request, call),
    getWebhookDelivery: (request, call) => showDelivery(deps, deps.pool, request, call),
    redeliverWebhookDelivery: (request, call) =>
      change(deps.idempotency, call, request, {
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
      return change(deps.idempotency, call, request, {
        make: async (tx) => {
          const { id } = await getWebhook(tx, request.id, call);
          await requestRedelivery(tx, id, dateOfTimestamp(since));
          return id;
        },
        show: async (sql, id) => webhookMessage(await getWebhook(sql, id, call), deps.clock()),
      });
    },
  };
}

async function list(
  deps: DeliveryDeps,
  request: Parameters<Handlers<typeof WebhookService>['listWebhookDeliveries']>[0],
  call: Call,
) {
  const { id } = await getWebhook(deps.pool, request.id, call);
  const limit = request.limit ?? DEFAULT_LIMIT;
  const status = request.status === DeliveryStatus.UNSPECIFIED ? undefined : request.status;
  const bound = ['deliveries', getPrincipal(call).projectId, id, status];
  const [before] = deps.cursors.openTexts(request.cursor, bound) ?? [];
  const rows = await listDeliveries(deps.pool, id, { status, before, limit: limit + 1 });
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const attempts = await listAttempts(
    deps.pool,
    page.map((row) => row.id),
  );
  const attemptsOf = (row: DeliveryRow) => attempts.filter(({ deliveryId }) => deliveryId === row.id);
  return create(ListWebhookDeliveriesResponseSchema, {
    data: page.map((row) => deliveryMessage(row, attemptsOf(row), deps.baseUrl(), 1)),
    nextCursor: rows.length > limit && last !== undefined ? deps.cursors.seal([last.id], bound) : '',
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
  return deliveryMessage(row, attempts, deps.baseUrl(), attempts.length);
}

function notFound(): ApiError {
  return new ApiError(ErrorCode.DELIVERY_NOT_FOUND, 'the subscription has no delivery with this id');
}
