import type { Logger } from '../../core/logger.js';
import type { OutageLog } from '../../core/outage-log.js';
import type { Pool } from '../../database/connect.js';
import type { ProjectSlots } from '../../jobs/project-slots.js';
import type { KeyRing } from '../../keys/key-ring.js';
import type { AttemptRecorder } from './attempt.js';
import type { SendWebhook } from './send.js';

/** The dependencies of webhook delivery. */
export type Webhooks = {
  /** A pool of its own, so that many subscriptions do not delay sealing. */
  pool: Pool;
  log: Logger;
  /** Sub-keys for encryption. */
  keys: KeyRing;
  /** The public base URL of the API. */
  baseUrl: () => string;
  send: SendWebhook;
  record: AttemptRecorder;
  slots: ProjectSlots;
  /** The lease of each subscription in progress; at most `maxActive`. */
  active: Map<string, number>;
  maxActive: number;
  /** `stopping` aborts at shutdown and ends claiming; `aborting` follows and ends requests in flight. */
  stopping: AbortSignal;
  aborting: AbortSignal;
  newDeliveryId: () => string;
  /** Logs attempts that could not be recorded. */
  outageLog: OutageLog;
  clock: () => number;
  random: () => number;
};
