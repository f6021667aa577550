import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import type { Logger } from '../core/logger.js';
import type { Pool } from '../database/connect.js';
import type { Witness } from './clients/witness.js';

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

/** The dependencies of the witness stage. */
export type WitnessStage = {
  pool: Pool;
  /** Renews leases: its commits do not wait for a synchronous standby. */
  localPool: Pool;
  log: Logger;
  witnesses: readonly ConfiguredWitness[];
  settings: { witnessTimeoutMs: number };
  /** Aborts shortly after shutdown begins and ends requests to witnesses. */
  aborting: AbortSignal;
  random: () => number;
  /** Counts answers of a witness, by its name, that contradict a log. */
  observeAlarm: (witness: string) => void;
  send: (job: Job) => void;
};
