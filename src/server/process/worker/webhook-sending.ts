import type { Config } from '../../../config/config.js';
import type { Logger } from '../../core/logger.js';
import { createOutageLog } from '../../core/outage-log.js';
import { createRandomSource, idMaker } from '../../core/random.js';
import { connectPool } from '../../database/connect.js';
import { keepRenewing, LEASE_MS } from '../../jobs/lease.js';
import { createProjectSlots } from '../../jobs/project-slots.js';
import { deriveKeyRing } from '../../keys/key-ring.js';
import type { Secrets } from '../../keys/secrets.js';
import { guardedConnector } from '../../net/destination.js';
import { type AttemptCounts, createAttemptRecorder } from '../../webhooks/delivery/attempt.js';
import { openWebhookSender } from '../../webhooks/delivery/send.js';
import type { Webhooks } from '../../webhooks/delivery/webhook-stage.js';
import { renewLeases } from '../../webhooks/store/webhook-leases.js';
import type { Standby } from '../standby.js';

/** The options of webhook delivery. */
export type WebhooksOptions = Pick<Standby, 'guard' | 'localPool'> & {
  config: Pick<Config, 'databaseUrl' | 'allowInsecureDestinations'> & {
    secrets: Pick<Secrets, 'secretKeys'>;
  };
  /** The public base URL of the API; a function because the port is known only after listening. */
  baseUrl: () => string;
  log: Logger;
  /** Called with the counts of recorded attempts. */
  observeAttempts: (counts: AttemptCounts) => void;
};

/** Webhook delivery, ready for jobs. */
type OpenWebhooks = {
  webhooks: Webhooks;
  /** Stops claiming and aborts requests in flight after a grace period. */
  stop(): void;
  /** Closes the connections. Call it once no job is running. */
  close(): Promise<void>;
};

/** Slots of one worker's requests, which projects share; each costs a connection. */
const SLOTS = 512;
const MAX_ACTIVE = 512;
const CONNECTIONS = 4;
const STATEMENT_TIMEOUT_MS = 10_000;
const GRACE_MS = 2_000;

/** Opens the connections for sending and recording attempts. */
export function openWebhooks(options: WebhooksOptions): OpenWebhooks {
  const { config, baseUrl, log } = options;
  const pool = connectPool({
    url: config.databaseUrl,
    name: 'webhooks',
    max: CONNECTIONS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    guard: options.guard,
  });
  const stopping = new AbortController();
  const aborting = new AbortController();
  const connect = guardedConnector({ allowInsecure: config.allowInsecureDestinations });
  const sender = openWebhookSender({ clock: Date.now, aborting: aborting.signal, connect });
  const source = createRandomSource();
  const webhooks: Webhooks = {
    pool,
    log,
    keys: deriveKeyRing(config.secrets.secretKeys, 'encryption'),
    baseUrl,
    send: sender.send,
    record: createAttemptRecorder({
      pool,
      newAuditId: idMaker(source, 'aud_'),
      observe: options.observeAttempts,
    }),
    slots: createProjectSlots(SLOTS),
    active: new Map(),
    maxActive: MAX_ACTIVE,
    stopping: stopping.signal,
    aborting: aborting.signal,
    newDeliveryId: idMaker(source, 'dlv_'),
    outageLog: createOutageLog(log, () => performance.now()),
    clock: Date.now,
    random: Math.random,
  };
  const stopRenewing = keepRenewing(async () => {
    if (webhooks.active.size > 0) await renewLeases(options.localPool, webhooks.active, LEASE_MS);
  });
  return {
    webhooks,
    stop: () => {
      stopping.abort();
      setTimeout(() => aborting.abort(), GRACE_MS).unref();
    },
    close: async () => {
      aborting.abort();
      await stopRenewing();
      await sender.close();
      await pool.end({ timeout: 5 });
    },
  };
}
