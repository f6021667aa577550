import { WebhookService } from '../../../../gen/attestation/v1/webhooks_pb.js';
import type { Config } from '../../../config/config.js';
import { createRandomSource } from '../../core/random.js';
import type { Pool } from '../../database/connect.js';
import type { ServiceEntry } from '../../http/services.js';
import { openIdempotency } from '../../idempotency/idempotency.js';
import type { SendJob } from '../../jobs/send-after.js';
import { deriveKeyRing } from '../../keys/key-ring.js';
import { findDestinationProblem, resolveByDns } from '../../net/destination.js';
import type { Cursors } from '../../rpc/cursor.js';
import { webhookHandlers } from '../../webhooks/rpc/webhooks.js';

/** WebhookService over an open database. `baseUrl` is read when an event is shown. */
export function webhookService(
  { config, baseUrl }: { config: Config; baseUrl: () => string },
  { pool, cursors, send }: { pool: Pool; cursors: Cursors; send: SendJob },
): ServiceEntry {
  const { secretKeys } = config.secrets;
  const { allowInsecureDestinations: allowInsecure } = config;
  const handlers = webhookHandlers({
    pool,
    send,
    idempotency: openIdempotency(config, pool),
    cursors,
    encryptionKeys: deriveKeyRing(secretKeys, 'encryption'),
    validateUrl: (url) => findDestinationProblem({ allowInsecure, resolve: resolveByDns }, url),
    baseUrl,
    clock: Date.now,
    random: createRandomSource(),
  });
  return { desc: WebhookService, handlers };
}
