import { create, type JsonObject } from '@bufbuild/protobuf';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import {
  type CreateWebhookRequest,
  type ListWebhooksRequest,
  ListWebhooksRequestSchema,
  ListWebhooksResponseSchema,
  type UpdateWebhookRequest,
  type Webhook,
  type WebhookService,
  WebhookStatus,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { recordAction } from '../../admin/audit-log.js';
import { type Call, getPrincipal, type Handlers } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Sql } from '../../database/connect.js';
import { changeOnce } from '../../idempotency/idempotency.js';
import { webhookJob } from '../../jobs/job.js';
import { sendAfter } from '../../jobs/send-after.js';
import { invalidRequest } from '../../json/problems.js';
import { decryptSecret, encryptSecret } from '../../keys/encryption.js';
import type { KeyRing } from '../../keys/key-ring.js';
import { pageReader } from '../../rpc/list-page.js';
import { findSecretBytes, formatSecret } from '../delivery/sign.js';
import {
  deleteWebhook,
  findWebhook,
  insertWebhook,
  listWebhooks,
  rotateWebhookSecret,
  updateWebhook,
  type WebhookRow,
} from '../store/webhooks.js';
import { assertFound, getWebhook } from './get-webhook.js';
import { type DeliveryDeps, deliveryHandlers } from './webhook-deliveries.js';
import { webhookMessage } from './webhook-messages.js';

/** Dependencies of the handlers of WebhookService. */
type WebhookDeps = DeliveryDeps & {
  /** Sub-keys that encrypt secrets. */
  encryptionKeys: KeyRing;
  /** Checks that events may be sent to a URL. Returns why not, undefined if they may. */
  validateUrl: (url: string) => Promise<string | undefined>;
};

const MAX_WEBHOOKS = 50;
const readPage = pageReader(ListWebhooksRequestSchema);
const SECRET_BYTES = 32;
/** How long the previous secret keeps signing after a rotation. */
const OVERLAP_MS = 24 * 3_600_000;
const DISABLED_BY_OWNER = 'disabled through the API';

/** The handlers of WebhookService. */
export function webhookHandlers(deps: WebhookDeps): Handlers<typeof WebhookService> {
  return {
    ...deliveryHandlers(deps),
    createWebhook: (request, call) => createWebhook(deps, request, call),
    getWebhook: async ({ id }, call) => webhookMessage(await getWebhook(deps.pool, id, call), deps.clock()),
    listWebhooks: (request, call) => listCallers(deps, request, call),
    updateWebhook: (request, call) =>
      sendAfter(deps.send, webhookJob(request.id), changeWebhook(deps, request, call)),
    deleteWebhook: (request, call) =>
      changeOnce(deps.idempotency, call, request, {
        make: async (tx) => {
          assertFound(await deleteWebhook(tx, getPrincipal(call), request.id));
          await recordChange(deps, tx, call, AuditAction.WEBHOOK_DELETED, request.id);
          return request.id;
        },
        show: showWithDeleted(deps, call),
      }),
    rotateWebhookSecret: (request, call) => {
      const secret = secretOrNew(deps, request.secret);
      return changeOnce(deps.idempotency, call, request, {
        make: async (tx) => {
          const row = await getWebhook(tx, request.id, call, { isLocked: true });
          if (decryptSecret(deps.encryptionKeys, row.secret, row.id) === secret) return request.id;
          const stored = encryptSecret(deps.encryptionKeys, secret, request.id);
          assertFound(await rotateWebhookSecret(tx, getPrincipal(call), request.id, stored, OVERLAP_MS));
          await recordChange(deps, tx, call, AuditAction.WEBHOOK_SECRET_ROTATED, request.id);
          return request.id;
        },
        show: showWithSecret(deps, call),
      });
    },
  };
}

async function createWebhook(deps: WebhookDeps, request: CreateWebhookRequest, call: Call): Promise<Webhook> {
  const secret = secretOrNew(deps, request.secret);
  const problem = await deps.validateUrl(request.url);
  return changeOnce(deps.idempotency, call, request, {
    make: async (tx) => {
      assertUrl(problem);
      const { projectId, environment } = getPrincipal(call);
      const id = `whk_${deps.random.ulid(deps.clock())}`;
      const stored = encryptSecret(deps.encryptionKeys, secret, id);
      const { url, events } = request;
      const webhook = { id, projectId, environment, url, events, secret: stored };
      if (!(await insertWebhook(tx, webhook, MAX_WEBHOOKS))) throw limitReached();
      await recordChange(deps, tx, call, AuditAction.WEBHOOK_CREATED, id);
      return id;
    },
    show: showWithSecret(deps, call),
  });
}

async function changeWebhook(deps: WebhookDeps, request: UpdateWebhookRequest, call: Call): Promise<Webhook> {
  const { id, url, events, status } = request;
  const problem = url === undefined ? undefined : await deps.validateUrl(url);
  return changeOnce(deps.idempotency, call, request, {
    make: async (tx) => {
      assertUrl(problem);
      const row = await getWebhook(tx, id, call, { isLocked: true });
      if (isUnchanged(row, request)) return id;
      const changes = {
        url,
        events: events.length === 0 ? undefined : events,
        status: status === WebhookStatus.UNSPECIFIED ? undefined : status,
        disabledReason: DISABLED_BY_OWNER,
      };
      assertFound(await updateWebhook(tx, getPrincipal(call), id, changes));
      const isDisabled = status === WebhookStatus.DISABLED;
      const action = isDisabled ? AuditAction.WEBHOOK_DISABLED : AuditAction.WEBHOOK_CHANGED;
      await recordChange(deps, tx, call, action, id, isDisabled ? { reason: DISABLED_BY_OWNER } : {});
      return id;
    },
    show: showWithDeleted(deps, call),
  });
}

/** Whether an update would change nothing. */
function isUnchanged(row: WebhookRow, { url, events, status }: UpdateWebhookRequest): boolean {
  return (
    (url === undefined || url === row.url) &&
    (events.length === 0 || events.join() === row.events.join()) &&
    (status === WebhookStatus.UNSPECIFIED || status === row.status)
  );
}

async function recordChange(
  deps: WebhookDeps,
  tx: Sql,
  call: Call,
  action: AuditAction,
  resourceId: string,
  detail: JsonObject = {},
): Promise<void> {
  await recordAction(deps, tx, call, { action, resourceId, detail });
}

async function listCallers(deps: WebhookDeps, request: ListWebhooksRequest, call: Call) {
  const { projectId, environment } = getPrincipal(call);
  const { rows, nextCursor } = await readPage(deps.cursors, request, {
    query: ['webhooks', projectId, environment],
    read: (position, limit) => {
      const before = position && Number(position[0]);
      return listWebhooks(deps.pool, { projectId, environment }, { before, limit });
    },
    positionOf: ({ number }) => [number],
  });
  return create(ListWebhooksResponseSchema, {
    data: rows.map((row) => webhookMessage(row, deps.clock())),
    nextCursor,
  });
}

/** Reads a subscription for a response, even if it was deleted after the call that is replayed. */
function showWithDeleted(deps: WebhookDeps, call: Call) {
  return async (sql: Sql, id: string) => webhookMessage(await getWithDeleted(sql, id, call), deps.clock());
}

function showWithSecret(deps: WebhookDeps, call: Call) {
  return async (sql: Sql, id: string) => {
    const row = await getWithDeleted(sql, id, call);
    const isDeleted = row.status === WebhookStatus.DELETED;
    const secret = isDeleted ? undefined : decryptSecret(deps.encryptionKeys, row.secret, row.id);
    return webhookMessage(row, deps.clock(), secret);
  };
}

async function getWithDeleted(sql: Sql, id: string, call: Call): Promise<WebhookRow> {
  const row = await findWebhook(sql, getPrincipal(call), id, { withDeleted: true });
  assertFound(row !== undefined);
  return row;
}

/** Returns the caller's secret, or a random one. Throws `request.invalid` if it is malformed. */
function secretOrNew({ random }: WebhookDeps, secret: string | undefined): string {
  if (secret === undefined) return formatSecret(random.bytes(SECRET_BYTES));
  if (findSecretBytes(secret) !== undefined) return secret;
  throw invalidRequest([
    { path: '/secret', message: 'must be whsec_ and the standard base64 of 24 to 64 bytes' },
  ]);
}

function assertUrl(problem: string | undefined): void {
  if (problem !== undefined) throw new ApiError(ErrorCode.WEBHOOK_INVALID_URL, problem);
}

function limitReached(): ApiError {
  return new ApiError(
    ErrorCode.WEBHOOK_LIMIT_REACHED,
    `the project has ${MAX_WEBHOOKS} webhook subscriptions in this environment; delete one first`,
  );
}
