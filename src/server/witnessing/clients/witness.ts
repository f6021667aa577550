/** A witness: a party outside the log that vouches for checkpoints. */
import type { JsonObject } from '@bufbuild/protobuf';

/** The wire name of a `WitnessKind`. */
type WitnessKindName = 'log_witness' | 'rfc3161' | 'opentimestamps' | 'evm';

/** The input of a witness. All kinds sign `body` or its SHA-256. */
export type CheckpointToWitness = {
  readonly origin: string;
  readonly treeSize: number;
  /** Lower-case hex. */
  readonly rootHash: string;
  /** The checkpoint's text without signatures. */
  readonly body: Uint8Array;
};

/** The newest checkpoint of a log, and what a witness that keeps state needs beside it. */
export type WitnessedCheckpoint = CheckpointToWitness & {
  /** The signed note. */
  readonly note: string;
  /** The largest tree size that this witness has vouched for; 0 if none. */
  readonly coveredSize: number;
  /** The RFC 6962 consistency proof from `fromSize` to `treeSize`. Throws FormatError if `fromSize` is larger. */
  proveConsistency(fromSize: number): Promise<Uint8Array[]>;
};

/** Verified evidence of a witness. `detail` is shown in batches and bundles and depends on the kind. */
export type WitnessEvidence = { readonly evidence: Uint8Array; readonly detail: JsonObject };

/**
 * The answer of a witness. `pending`: it has accepted the request and needs time. `state` is what `poll` needs to
 * continue; it is stored before `poll` is called, after `pollAfterMs` or later. `detail` is shown in batches meanwhile.
 */
export type WitnessAnswer =
  | ({ readonly type: 'landed' } & WitnessEvidence)
  | {
      readonly type: 'pending';
      readonly state: Uint8Array;
      readonly detail: JsonObject;
      readonly pollAfterMs: number;
    };

/** The answer to a poll. `abandoned`: the request will never be fulfilled, for this reason; another one is made. */
export type PollAnswer = WitnessAnswer | { readonly type: 'abandoned'; readonly reason: string };

/** A request that the witness has accepted. `ageMs`: since then. */
export type PendingRequest = {
  readonly checkpoint: CheckpointToWitness;
  readonly state: Uint8Array;
  readonly detail: JsonObject;
  readonly ageMs: number;
};

/** A configured witness. */
export type Witness = {
  readonly name: string;
  readonly kind: WitnessKindName;
  /**
   * Makes one request. Rejects with a one-line message for operators and the batch's `last_error`; the caller schedules
   * retries. Nothing keeps running after `signal` aborts. What costs and cannot be repeated is left to `poll`: the
   * process may end before the answer is stored.
   */
  ask(checkpoint: WitnessedCheckpoint, signal: AbortSignal): Promise<WitnessAnswer>;
  /** Continues a pending request. May be called repeatedly with one state. Rejects as `ask` does; the state stays. */
  poll?(request: PendingRequest, signal: AbortSignal): Promise<PollAnswer>;
  /**
   * Checks evidence that has landed once more, where it can be undone. Resolves to why it is not valid any more, or to
   * undefined if it is, or that cannot be determined now. Rejects as `ask` does.
   */
  recheck?(evidence: Uint8Array, signal: AbortSignal): Promise<string | undefined>;
  /** Set if it has at most one pending request, over all logs. */
  readonly oneAtATime?: true;
};
