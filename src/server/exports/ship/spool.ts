import { createHash, type Hash, hash as hashOnce } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import type { StreamedObject } from '../destinations/destination.js';
import type { ExportObject } from '../destinations/object-store.js';
import { type SpoolAccount, type SpoolBudget, SpoolYield } from './spool-budget.js';
import { createSink } from './spool-sink.js';

/** Chunks that gzip makes: fewer, larger ones take less CPU. */
const CHUNK_BYTES = 256 * 1024;
/** Bytes that are hashed in one turn of the event loop. */
const HASHED_BYTES = 256 * 1024;
/** Level 1 compresses proofs, which repeat each other, to a fifth at a third of the CPU of level 6. */
const GZIP_LEVEL = 1;

type SpoolOptions = {
  /** An existing directory. */
  folder: string;
  budget: SpoolBudget;
  projectId: string;
  isGzip: boolean;
  signal: AbortSignal;
};

/** An object and the renderer of its text. A chunk is valid until the next is requested. */
type Made = Pick<ExportObject, 'name' | 'contentType' | 'revision'> & {
  render: () => AsyncIterable<Uint8Array>;
  /** Whether the text is certainly longer than so many bytes, if that is known before it is rendered. */
  isLonger?: (bytes: number) => Promise<boolean>;
};

/**
 * Renders an object on demand. A whole object is spooled, so that its length and SHA-256 are known before it is sent, and it
 * can be sent again: short text in memory, longer text in an unlinked file. Text that is known to be too long for that is
 * streamed without a file, so that the destination does not wait. Memory does not grow with the text. Waits for the budget;
 * each time that the object yields, `render` and `use` are called again.
 *
 * @param use gets the object, which is valid until it resolves
 * @returns the result of `use`
 */
export async function spool<T>(
  { render, isLonger = async () => false, ...described }: Made,
  { budget, projectId, signal, ...options }: SpoolOptions,
  use: (object: StreamedObject) => Promise<T>,
): Promise<T> {
  for (;;) {
    const open = () => openSpool(render(), { account: budget.open(projectId), signal, ...options });
    let opened = open();
    let isTaken = false;
    const upTo = async (bytes: number) => {
      const spooled = await opened.upTo(bytes);
      return spooled && { ...described, ...spooled };
    };
    try {
      return await use({
        ...described,
        upTo: async (bytes) => (options.isGzip || !(await isLonger(bytes)) ? upTo(bytes) : undefined),
        readPart: (buffer) => {
          isTaken = true;
          return opened.readPart(buffer);
        },
        whole: async () => {
          if (isTaken) {
            await opened.close();
            opened = open();
            isTaken = false;
          }
          return (await upTo(Number.POSITIVE_INFINITY)) as ExportObject;
        },
        summary: () => opened.summary(),
      });
    } catch (error) {
      if (!(error instanceof SpoolYield)) throw error;
    } finally {
      await opened.close();
    }
  }
}

/** The spooled bytes of an object, readable any number of times until they are closed. */
type Spooled = Pick<ExportObject, 'bytes' | 'sha256' | 'read' | 'fill'>;

type Attempt = Pick<SpoolOptions, 'folder' | 'isGzip' | 'signal'> & { account: SpoolAccount };

/** Renders a text once; see `StreamedObject`. */
function openSpool(text: AsyncIterable<Uint8Array>, { folder, account, isGzip, signal }: Attempt) {
  const closing = new AbortController();
  const either = AbortSignal.any([signal, closing.signal]);
  const source = createSource(isGzip ? compress(text, either) : text, either);
  const sink = createSink(folder, account, either);
  const spooledHash = createHash('sha256');
  const reader = createPartReader(source, sink);
  let spooled: Spooled | undefined;
  const upTo = async (bytes: number): Promise<Spooled | undefined> => {
    while (spooled === undefined && sink.bytes() <= bytes) {
      const chunk = await source.pull();
      if (chunk === undefined) {
        spooled = { bytes: sink.bytes(), sha256: spooledHash.digest(), ...sink.finish() };
        break;
      }
      spooledHash.update(chunk);
      await sink.add(chunk);
    }
    return spooled;
  };
  const close = async () => {
    closing.abort(new Error('the object is not wanted any more'));
    await source.end();
    await sink.dispose();
  };
  return { upTo, readPart: reader.readPart, summary: () => spooled ?? reader.summary(), close };
}

type Source = ReturnType<typeof createSource>;
type Sink = ReturnType<typeof createSink>;

/** Reads an object part by part: first the spooled bytes, then the rest of the source. */
function createPartReader(source: Source, sink: Sink) {
  const hash = createHash('sha256');
  let bytes = 0;
  let sha256: Uint8Array | undefined;
  let rest: Uint8Array = new Uint8Array();
  let isSpooled = true;
  /** Fills the beginning of a buffer. @returns the number of bytes; 0 at the end */
  const fill = async (buffer: Uint8Array): Promise<number> => {
    const spooled = Math.min(buffer.length, sink.bytes() - bytes, CHUNK_BYTES);
    if (spooled > 0) {
      await sink.fill(buffer.subarray(0, spooled), bytes);
      return spooled;
    }
    if (isSpooled) await sink.dispose();
    isSpooled = false;
    while (rest.length === 0) {
      const chunk = await source.pull();
      if (chunk === undefined) return 0;
      rest = chunk;
    }
    const piece = rest.subarray(0, buffer.length);
    buffer.set(piece);
    rest = rest.subarray(piece.length);
    return piece.length;
  };
  const readPart = async (buffer: Uint8Array): Promise<{ bytes: number; sha256: Uint8Array }> => {
    const partHash = createHash('sha256');
    let filled = 0;
    let hashed = 0;
    for (let added = 1; added > 0 && filled < buffer.length; bytes += added) {
      added = await fill(buffer.subarray(filled));
      filled += added;
      const isEnd = added === 0 || filled === buffer.length;
      if (filled - hashed < HASHED_BYTES && !isEnd) continue;
      if (filled > hashed) addTo([partHash, hash], buffer.subarray(hashed, filled));
      hashed = filled;
      // Parts in flight are sent meanwhile.
      await setImmediate();
    }
    if (filled < buffer.length) sha256 ??= hash.digest();
    return { bytes: filled, sha256: partHash.digest() };
  };
  return {
    readPart,
    summary: () => {
      if (sha256 === undefined) throw new Error('the object is still being rendered');
      return { bytes, sha256 };
    },
  };
}

function addTo(hashes: readonly Hash[], bytes: Uint8Array): void {
  for (const hash of hashes) hash.update(bytes);
}

/** The chunks of a text. */
function createSource(text: AsyncIterable<Uint8Array>, signal: AbortSignal) {
  const chunks = text[Symbol.asyncIterator]();
  let isEnded = false;
  return {
    /** The next chunk, which holds until the next call; undefined at the end. */
    pull: async () => {
      signal.throwIfAborted();
      if (isEnded) return undefined;
      const { done, value } = await chunks.next();
      signal.throwIfAborted();
      if (!done) return value;
      isEnded = true;
      return undefined;
    },
    end: async () => {
      await chunks.return?.().catch(() => {});
    },
  };
}

/** Compresses a text. */
async function* compress(text: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncIterable<Uint8Array> {
  const gzip = createGzip({ level: GZIP_LEVEL, chunkSize: CHUNK_BYTES });
  const compressing = pipeline(copyEach(text), gzip, { signal });
  compressing.catch(() => {});
  yield* gzip;
  await compressing;
}

/** Copies chunks, for a stream that reads ahead. */
async function* copyEach(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  for await (const chunk of chunks) yield Buffer.from(chunk);
}

/** A spooled object of bytes in memory. */
export function spoolBytes(bytes: Uint8Array): Spooled {
  return {
    bytes: bytes.length,
    sha256: hashOnce('sha256', bytes, 'buffer'),
    read: ({ start, end } = { start: 0, end: bytes.length }) =>
      Readable.from([bytes.subarray(start, end)], { objectMode: false }),
  };
}
