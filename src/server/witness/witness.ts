/** What every witness is: someone outside the log who can be asked to vouch for a checkpoint. */
import type { JsonObject } from '@bufbuild/protobuf';

/** As `WitnessKind` spells it on the wire. */
export type WitnessKindName = 'log_witness' | 'rfc3161' | 'opentimestamps' | 'evm';

/** The checkpoint a witness is asked about. All kinds vouch for `body`, or for its SHA-256. */
export type WitnessedCheckpoint = {
  readonly origin: string;
  readonly treeSize: number;
  /** Lower-case hex. */
  readonly rootHash: string;
  /** The checkpoint's text without signatures. */
  readonly body: Uint8Array;
  /** The signed note. */
  readonly note: string;
};

/** What a witness handed over, already verified: `detail` is what batch and bundle show of it, by kind. */
export type WitnessEvidence = { evidence: Uint8Array; detail: JsonObject };

/** A configured witness. */
export type Witness = {
  readonly name: string;
  readonly kind: WitnessKindName;
  /**
   * Asks once. Rejects with an error whose message is one short line fit for an operator and for the batch's
   * `last_error`; the caller decides when to ask again. Nothing is left running after `signal` aborts.
   */
  ask(checkpoint: WitnessedCheckpoint, signal: AbortSignal): Promise<WitnessEvidence>;
};
