import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import type { CheckpointSigner } from '../../proof/log/checkpoint.js';
import type { Logger } from '../core/logger.js';
import type { OutageLog } from '../core/outage-log.js';
import type { KeyRing } from '../keys/key-ring.js';
import type { Pool } from '../store/database/connect.js';
import type { Log } from '../store/log/logs.js';
import type { Witness } from '../witness/witness.js';
import type { Register } from './register/register.js';
import type { AttemptRecorder } from './webhooks/attempt-recorder.js';
import type { ProjectSlots } from './webhooks/project-slots.js';
import type { SendWebhook } from './webhooks/send.js';

/** A witness as the operator configured it: how to ask it, for which environments, and how often. */
export type ConfiguredWitness = {
  witness: Witness;
  /** Proto WitnessKind number. */
  kind: number;
  /** Proto Environment numbers. */
  environments: readonly number[];
  required: boolean;
  /** The least time between two answers it is asked for. */
  everyMs: number;
};

/** What sending webhooks works with. */
export type Webhooks = {
  /** Of its own, so that a crowd of subscriptions delays no sealing. */
  pool: Pool;
  log: Logger;
  /** Sub-keys for encryption. */
  keys: KeyRing;
  /** The API's address as the world sees it. */
  baseUrl: () => string;
  send: SendWebhook;
  record: AttemptRecorder;
  slots: ProjectSlots;
  /** The subscriptions being worked on, at most `maxActive`, and the lease of each. */
  active: Map<string, number>;
  maxActive: number;
  /** Aborted when the worker stops: nothing more is claimed; and a little later, what is under way is given up. */
  stopping: AbortSignal;
  aborting: AbortSignal;
  newDeliveryId: () => string;
  /** Told of attempts that were not recorded. */
  outageLog: OutageLog;
  clock: () => number;
  random: () => number;
};

/** What the stages of the logs share, up to the events of a settled batch. */
export type LogPipeline = {
  pool: Pool;
  log: Logger;
  register: Register;
  witnesses: readonly ConfiguredWitness[];
  /** The key that signs a log's checkpoints; throws when this process does not hold it. */
  signerOf: (log: Log) => CheckpointSigner;
  settings: { batchIntervalMs: number; batchMaxLeaves: number; witnessTimeoutMs: number };
  newBatchId: () => string;
  /** Aborted a little after the worker was told to stop: witnesses that have not answered by then are not waited for. */
  aborting: AbortSignal;
  random: () => number;
  /** Hands a job on, at once and without waiting; a lost one is found again by the reconciler. */
  send: (job: Job) => void;
};

/** What all stages of a worker share. */
export type Pipeline = LogPipeline & { webhooks: Webhooks };
