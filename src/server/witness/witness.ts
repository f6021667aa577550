/** A witness: a party outside the log that vouches for checkpoints. */
import type { JsonObject } from '@bufbuild/protobuf';

/** The wire name of a `WitnessKind`. */
type WitnessKindName = 'log_witness' | 'rfc3161' | 'opentimestamps' | 'evm';

/** The checkpoint to vouch for. All kinds sign `body` or its SHA-256. */
type WitnessedCheckpoint = {
  readonly origin: string;
  readonly treeSize: number;
  /** Lower-case hex. */
  readonly rootHash: string;
  /** The checkpoint's text without signatures. */
  readonly body: Uint8Array;
  /** The signed note. */
  readonly note: string;
};

/** Verified evidence of a witness. `detail` is shown in batches and bundles and depends on the kind. */
export type WitnessEvidence = { evidence: Uint8Array; detail: JsonObject };

/** A configured witness. */
export type Witness = {
  readonly name: string;
  readonly kind: WitnessKindName;
  /**
   * Asks once. Rejects with a one-line message for operators and the batch's `last_error`; the caller schedules retries.
   * Nothing keeps running after `signal` aborts.
   */
  ask(checkpoint: WitnessedCheckpoint, signal: AbortSignal): Promise<WitnessEvidence>;
};
