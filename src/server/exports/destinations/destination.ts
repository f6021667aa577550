/** A destination of exports: storage of the customer, of one of the kinds that the API knows. */
import {
  type ExportDestination,
  ExportDestinationSchema,
} from '../../../../gen/attestation/v1/exports_pb.js';
import type { ExportObject, ObjectStore } from './object-store.js';

/**
 * An object whose bytes are rendered on demand. Calls must not overlap. Each rejects with the
 * reason if the object cannot be rendered.
 */
export type StreamedObject = Pick<ExportObject, 'name' | 'contentType' | 'revision'> & {
  /** The object if it has no more bytes than that; undefined if it is larger. */
  upTo(bytes: number): Promise<ExportObject | undefined>;
  /**
   * Fills a buffer with the next bytes. Calls must not overlap.
   *
   * @returns their number, fewer than fit only at the end, and their SHA-256
   */
  readPart(buffer: Uint8Array): Promise<{ bytes: number; sha256: Uint8Array }>;
  /** The object with all its bytes. After a call of `readPart` it is rendered again, and its content may be newer. */
  whole(): Promise<ExportObject>;
  /** Length and SHA-256 of the whole, once its last byte has been rendered. */
  summary(): Pick<ExportObject, 'bytes' | 'sha256'>;
};

/**
 * The outcome of a write: `written` if the object is now there with this revision, by this write or an earlier one;
 * `superseded` if the destination holds another object of the same or a later `revision`, or the writer is not current.
 */
export type WriteOutcome = { outcome: 'written' } | { outcome: 'superseded'; revision: number | undefined };

/** Controls of a write: `signal` aborts it, and `isCurrent` checks that its writer still holds the lease. */
export type WriteControl = { signal: AbortSignal; isCurrent: () => Promise<boolean> };

/** An open destination. Every method rejects with `DestinationError` if the destination fails. */
export type OpenDestination = {
  /**
   * Writes an object, only over an older revision of itself: reads what is there, asks `isCurrent`, then writes on the
   * condition that it is unchanged since. Repeats that if another writer was faster.
   */
  write(object: ExportObject, control: WriteControl): Promise<WriteOutcome>;
  /** As `write`, but sends parts of the object while it is rendered. Absent if the destination cannot. */
  writeStreamed?(object: StreamedObject, control: WriteControl): Promise<WriteOutcome>;
  /** The store itself, of destinations that hold objects. */
  readonly store?: ObjectStore;
  /** Writes a probe and checks that conditional writes are honoured. Idempotent. */
  probe(signal: AbortSignal): Promise<void>;
  /** Closes connections and deletes temporary files. */
  close(): Promise<void>;
};

/** The members of a destination, secrets included. Those that it does not have are empty. */
export type DestinationMembers = Readonly<Record<MemberName, string>> & Pick<ExportDestination, 'kind'>;

type MemberName = Exclude<keyof ExportDestination, 'kind' | `$${string}`>;

/** The members of a destination's message. */
export function destinationMembers(destination: ExportDestination): DestinationMembers {
  const members = ExportDestinationSchema.fields.map(({ localName }) => [
    localName,
    destination[localName as keyof ExportDestination] ?? '',
  ]);
  return Object.fromEntries(members) as DestinationMembers;
}

/** Dependencies of a destination. */
export type DestinationContext = {
  /** The destination with its secrets, valid by the rules of the proto. */
  readonly destination: DestinationMembers;
  readonly exportId: string;
  /** The project that owns the export: the external id for AssumeRole. */
  readonly projectId: string;
  /** Permits http, any port and loopback, for development only. */
  readonly allowInsecure: boolean;
  /** Set for a store of the operator: it may be at any address, and the operator's own credentials may be used. */
  readonly isOperators?: boolean;
  /** The buckets and accounts that the operator's own cloud credentials may be used for. */
  readonly ambientCredentials: readonly string[];
  /** An existing directory for temporary files. */
  readonly temporaryDirectory: string;
};

/** A failure of a destination. The message is a line for its owner and contains no secret. */
export class DestinationError extends Error {
  override readonly name = 'DestinationError';
  /** The `Retry-After` of the destination, if it sent one. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: { cause?: unknown; retryAfterMs?: number | undefined } = {}) {
    super(message, { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
  }
}
