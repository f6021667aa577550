import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import type { LogSigner } from '../../proof/log/log-signature.js';
import type { Logger } from '../core/logger.js';
import type { Pool } from '../database/connect.js';
import type { Register } from './register/register.js';
import type { Log } from './store/logs.js';
import type { Transition } from './store/settle.js';

/** The dependencies of the stages that extend a log: seal and settle. */
export type LogStages = {
  pool: Pool;
  log: Logger;
  register: Register;
  /** The witnesses that are asked about a new batch, with the proto Environment numbers of their logs. */
  witnesses: readonly { witness: { name: string }; environments: readonly number[] }[];
  /** Returns the signer of a log's checkpoints. Throws if this process does not hold the key. */
  signerOf: (log: Log) => LogSigner;
  settings: { batchIntervalMs: number; batchMaxLeaves: number };
  newBatchId: () => string;
  /** Sends a job without waiting. The reconciler finds lost jobs again. */
  send: (job: Job) => void;
  /** Counts a batch that was settled. */
  observeSettled: (transition: Transition) => void;
};
