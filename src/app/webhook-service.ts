import { WebhookService } from '../../gen/attestation/v1/webhooks_pb.js';
import type { Config } from '../config.js';
import type { ServiceEntry } from '../http/services.js';
import { findDestinationProblem, resolveByDns } from '../net/destination.js';
import { createRandomSource } from '../random.js';
import type { Cursors } from '../rpc/cursor.js';
import { webhookHandlers } from '../rpc/webhooks.js';
import { deriveKeyRing } from '../secret-key.js';
import type { Pool } from '../store/connect.js';
import { openIdempotency } from './idempotency.js';

/** WebhookService over an open database. `baseUrl` is read when an event is shown. */
export function webhookService(
  { config, baseUrl }: { config: Config; baseUrl: () => string },
  pool: Pool,
  cursors: Cursors,
): ServiceEntry {
  const { secretKeys } = config.secrets;
  const { allowInsecureDestinations: allowInsecure } = config;
  const handlers = webhookHandlers({
    pool,
    idempotency: openIdempotency(config, pool),
    cursors,
    encryptionKeys: deriveKeyRing(secretKeys, 'encryption'),
    findUrlProblem: (url) => findDestinationProblem({ allowInsecure, resolve: resolveByDns }, url),
    baseUrl,
    clock: Date.now,
    random: createRandomSource(),
  });
  return { desc: WebhookService, handlers };
}
