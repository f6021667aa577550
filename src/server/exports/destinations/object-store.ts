/** A store of objects: a bucket or container, with writes on conditions. */
import type { Readable } from 'node:stream';

/** An object to write. Its bytes can be read any number of times, and concurrently. */
export type ExportObject = {
  /** The full name, the destination's prefix included: `a/b/c.jsonl`. */
  readonly name: string;
  readonly contentType: string;
  /** `Cache-Control` of the object; without it the store's default. */
  readonly cacheControl?: string;
  readonly bytes: number;
  readonly sha256: Uint8Array;
  /** Counts up from 1 whenever the content may have changed. */
  readonly revision: number;
  /** A new stream of the bytes from `start` to before `end`, by default of all. */
  read(range?: { start: number; end: number }): Readable;
  /** Fills a buffer with the bytes from `start` on; undefined if the bytes are in memory, of which `read` makes no copies. */
  fill?: ((buffer: Uint8Array, start: number) => Promise<void>) | undefined;
};

/** The object that a store holds under a name; `version` is its ETag or generation. */
export type Stored = { version: string; revision: number | undefined; sha256: string | undefined };

/** The text of an object of that version. */
export type StoredText = Pick<Stored, 'version'> & { text: string };

/** A bucket or container. Its methods reject with `DestinationError`, or with the signal's reason once it is aborted. */
export type ObjectStore = {
  /** Reads the object of a name; undefined if there is none. */
  read(name: string, signal: AbortSignal): Promise<Stored | undefined>;
  /** Reads an object's text, of at most 256 KiB, and its version; undefined if there is none. */
  readText(name: string, signal: AbortSignal): Promise<StoredText | undefined>;
  /**
   * Reads the bytes of an object from `start` to before `end`, fewer if it ends before; undefined if there is none. At
   * most 256 KiB.
   */
  readBytes(
    name: string,
    range: { start: number; end: number },
    signal: AbortSignal,
  ): Promise<Uint8Array | undefined>;
  /** Stores an object if the store still holds `stored`, or nothing if that is undefined; false if it does not. */
  write(
    object: ExportObject,
    stored: Pick<Stored, 'version'> | undefined,
    signal: AbortSignal,
  ): Promise<boolean>;
};
