import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import type { ManifestFields } from '../../proof/export/manifest-fields.js';
import type { LogSigner } from '../../proof/log/log-signature.js';
import type { Logger } from '../core/logger.js';
import type { OutageLog } from '../core/outage-log.js';
import type { Destinations } from '../export/destinations.js';
import type { KeyRing } from '../keys/key-ring.js';
import type { Pool } from '../store/database/connect.js';
import type { LeasedExport } from '../store/exports/export-leases.js';
import type { ShipmentWork } from '../store/exports/export-work.js';
import type { Log } from '../store/log/logs.js';
import type { Witness } from '../witness/witness.js';
import type { SpoolBudget } from './exports/spool-budget.js';
import type { ProjectSlots } from './project-slots.js';
import type { Register } from './register/register.js';
import type { AttemptRecorder } from './webhooks/attempt.js';
import type { SendWebhook } from './webhooks/send.js';

/** A witness from the configuration: its client, its environments and its interval. */
export type ConfiguredWitness = {
  witness: Witness;
  /** Proto WitnessKind number. */
  kind: number;
  /** Proto Environment numbers. */
  environments: readonly number[];
  required: boolean;
  /** Minimum interval between two requests that succeed. */
  everyMs: number;
};

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

/** The dependencies of the log stages: seal, witness, settle, notify. */
export type LogPipeline = {
  pool: Pool;
  /** Renews leases: its commits do not wait for a synchronous standby. */
  localPool: Pool;
  /** Throws while no commit is confirmed, before a job begins. */
  assertCommits: () => void;
  log: Logger;
  register: Register;
  witnesses: readonly ConfiguredWitness[];
  /** Returns the signer of a log's checkpoints. Throws if this process does not hold the key. */
  signerOf: (log: Log) => LogSigner;
  settings: { batchIntervalMs: number; batchMaxLeaves: number; witnessTimeoutMs: number };
  newBatchId: () => string;
  /** Aborts shortly after shutdown begins and ends requests to witnesses. */
  aborting: AbortSignal;
  random: () => number;
  /** Counts answers of a witness, by its name, that contradict a log. */
  observeAlarm: (witness: string) => void;
  /** Sends a job without waiting. The reconciler finds lost jobs again. */
  send: (job: Job) => void;
};

/**
 * An export's lease in this process. `losing` aborts its writes once another process has taken it; `superseded` names the
 * objects of which the destination had another revision.
 */
type HeldLease = { lease: number; losing: AbortController; superseded: Set<string> };

/** The dependencies of shipping exports. */
export type Exports = {
  /** A pool of its own, so that many exports do not delay sealing. */
  pool: Pool;
  log: Logger;
  destinations: Destinations;
  /**
   * Renders the lines of a batch's matching submissions as they are now, in UTF-8, and calls `count` for each. A chunk is
   * valid until the next is requested.
   */
  renderLines: (leased: LeasedExport, work: ShipmentWork, count: () => void) => AsyncIterable<Uint8Array>;
  /** Returns whether these lines have certainly more than so many bytes. */
  areLinesLonger: (leased: LeasedExport, work: ShipmentWork, bytes: number) => Promise<boolean>;
  /**
   * Signs a manifest with the DSSE key of the environment, a proto Environment number. Rejects if this process lacks it.
   *
   * @returns the envelope as JSON
   */
  signManifest: (environment: number, fields: ManifestFields) => Promise<Uint8Array>;
  slots: ProjectSlots;
  /** The leases of the exports in progress. */
  active: Map<string, HeldLease>;
  /** `stopping` aborts at shutdown and ends claiming; `aborting` follows and ends writes in progress. */
  stopping: AbortSignal;
  aborting: AbortSignal;
  /** Where objects are kept while they are written. */
  temporaryDirectory: string;
  spoolBudget: SpoolBudget;
  pacing: { manifestDelayMs: number };
  /** Logs objects that could not be made. */
  outageLog: OutageLog;
  observe: (shipped: { outcome: 'shipped' | 'failed'; bytes: number }) => void;
  newDeliveryId: () => string;
  /** For durations only: the database's clock is the one of all times. */
  monotonicMs: () => number;
  random: () => number;
};

/** The dependencies of all stages. */
export type Pipeline = LogPipeline & { webhooks: Webhooks; exports: Exports };
