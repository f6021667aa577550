import type { Job } from '../../gen/attestation/jobs/v1/jobs_pb.js';
import type { Logger } from '../logger.js';
import type { CheckpointSigner } from '../proof/checkpoint.js';
import type { Pool } from '../store/connect.js';
import type { Log } from '../store/logs.js';
import type { Witness } from '../witness/witness.js';
import type { Register } from './register.js';

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

/** What the stages of a worker share. */
export type Pipeline = {
  pool: Pool;
  log: Logger;
  register: Register;
  witnesses: readonly ConfiguredWitness[];
  /** The key that signs a log's checkpoints; throws when this process does not hold it. */
  signerOf: (log: Log) => CheckpointSigner;
  settings: { batchIntervalMs: number; batchMaxLeaves: number; witnessTimeoutMs: number };
  newBatchId: () => string;
  random: () => number;
  /** Hands a job on, at once and without waiting; a lost one is found again by the reconciler. */
  send: (job: Job) => void;
};
