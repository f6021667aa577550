import { WebhookService } from '../../../../gen/attestation/v1/webhooks_pb.js';
import type { Config } from '../../../config/config.js';
import { createRandomSource } from '../../core/random.js';
import type { ServiceEntry } from '../../http/services.js';
import { deriveKeyRing } from '../../keys/key-ring.js';
import { findDestinationProblem, resolveByDns } from '../../net/destination.js';
import type { Cursors } from '../../rpc/cursor.js';
import { openIdempotency } from '../../rpc/idempotency.js';
import type { SendJob } from '../../rpc/send-after.js';
import { webhookHandlers } from '../../rpc/webhooks/webhooks.js';
import type { Pool } from '../../store/database/connect.js';

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
