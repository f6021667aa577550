/** A log to audit, with everything that is compared with it. */
import type { ExpectedLeaf } from '../../proof/log/audit.js';
import type { SourcedNote } from './checkpoint/audit-checkpoints.js';
import type { Quorum } from './checkpoint/quorum.js';
import type { Signers } from './checkpoint/seen-checkpoint.js';
import type { LogSource } from './source/log-source.js';

/** A log, where it is served, and what must agree with it. */
export type WatchedLog = Signers & {
  readonly main: LogSource;
  readonly mirrors: readonly LogSource[];
  readonly witnesses: readonly LogSource[];
  /** Checkpoints of bundles and batches. */
  readonly given: readonly SourcedNote[];
  /** Leaves of known statements that were not yet found in the log, by log index. */
  readonly expected: Map<number, ExpectedLeaf>;
  readonly isTrustedKey: (spki: Uint8Array) => boolean;
  /** Logs that a mirror may serve instead. */
  readonly otherOrigins: readonly string[];
};

/** When an audit is satisfied with a checkpoint. */
export type Demands = {
  /** After how long without a new checkpoint or cosignature the log is stale; never if undefined. */
  readonly maxAgeMs?: number | undefined;
  /** Whether these witnesses are enough. */
  readonly isQuorum?: Quorum | undefined;
};
