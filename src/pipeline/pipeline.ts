import type { Job } from '../../gen/attestation/jobs/v1/jobs_pb.js';
import type { Logger } from '../logger.js';
import type { CheckpointSigner } from '../proof/checkpoint.js';
import type { KeyRing } from '../secret-key.js';
import type { Pool } from '../store/connect.js';
import type { Log } from '../store/logs.js';
import type { Trouble } from '../trouble.js';
import type { SendWebhook } from '../webhook/send.js';
import type { Witness } from '../witness/witness.js';
import type { AttemptRecorder } from './attempt-recorder.js';
import type { Register } from './register.js';
import type { Slots } from './slots.js';

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
  slots: Slots;
  /** The subscriptions being worked on, at most `maxActive`, and the lease of each. */
  active: Map<string, number>;
  maxActive: number;
  /** Aborted when the worker stops: nothing more is claimed; and a little later, what is under way is given up. */
  stopping: AbortSignal;
  aborting: AbortSignal;
  newDeliveryId: () => string;
  /** Told of attempts that were not recorded. */
  trouble: Trouble;
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
