import { createHash, hash as hashOnce } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { ExportObject, GrowingObject } from '../../export/destination.js';
import { type SpoolAccount, type SpoolBudget, SpoolYield } from './spool-budget.js';
import { createSink } from './spool-sink.js';

/** Chunks that gzip makes: fewer, larger ones take less CPU. */
const CHUNK_BYTES = 256 * 1024;
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

/** An object, and how its text is made; a chunk of it holds until the next is asked for. */
type Made = Pick<ExportObject, 'name' | 'contentType' | 'revision'> & {
  render: () => AsyncIterable<Uint8Array>;
};

/**
 * Makes an object as its user asks for it. What is wanted whole is in a file without a name, so that its length and
 * SHA-256 are known before it is sent, and it can be sent again; short text stays in memory. Memory does not grow with the
 * text. Waits for room in the budget, which may take several attempts, each of which calls `render` and `use`.
 *
 * @param use is called with the object, which ends with it
 * @returns what `use` does
 */
export async function spool<T>(
  { render, ...described }: Made,
  { budget, projectId, signal, ...options }: SpoolOptions,
  use: (object: GrowingObject) => Promise<T>,
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
        upTo,
        next: (buffer) => {
          isTaken = true;
          return opened.next(buffer);
        },
        whole: async () => {
          if (isTaken) {
            await opened.close();
            opened = open();
            isTaken = false;
          }
          return (await upTo(Number.POSITIVE_INFINITY)) as ExportObject;
        },
        made: () => opened.made(),
      });
    } catch (error) {
      if (!(error instanceof SpoolYield)) throw error;
    } finally {
      await opened.close();
    }
  }
}

/** The bytes of an object, which can be read any number of times until they are closed. */
type Spooled = Pick<ExportObject, 'bytes' | 'sha256' | 'read' | 'fill'>;

type Attempt = Pick<SpoolOptions, 'folder' | 'isGzip' | 'signal'> & { account: SpoolAccount };

/** One making of a text: see `GrowingObject`. */
function openSpool(text: AsyncIterable<Uint8Array>, { folder, account, isGzip, signal }: Attempt) {
  const closing = new AbortController();
  const either = AbortSignal.any([signal, closing.signal]);
  const source = createSource(isGzip ? compress(text, either) : text, either);
  const sink = createSink(folder, account, either);
  let given = 0;
  let rest: Uint8Array = new Uint8Array();
  const upTo = async (bytes: number): Promise<Spooled | undefined> => {
    while (source.made().bytes <= bytes) {
      const chunk = await source.pull();
      if (chunk === undefined) return { ...source.made(), ...sink.finish() };
      await sink.add(chunk);
    }
    return undefined;
  };
  /** Bytes that were spooled come first, and are read from there once. */
  const next = async (buffer: Uint8Array): Promise<number> => {
    let filled = Math.min(buffer.length, sink.bytes() - given);
    if (filled > 0) await sink.fill(buffer.subarray(0, filled), given);
    given += filled;
    if (given === sink.bytes()) await sink.dispose();
    while (filled < buffer.length) {
      if (rest.length === 0) {
        const chunk = await source.pull();
        if (chunk === undefined) break;
        rest = chunk;
      }
      const piece = rest.subarray(0, buffer.length - filled);
      buffer.set(piece, filled);
      rest = rest.subarray(piece.length);
      filled += piece.length;
    }
    return filled;
  };
  const close = async () => {
    closing.abort(new Error('the object is not wanted any more'));
    await source.end();
    await sink.dispose();
  };
  return { upTo, next, made: source.made, close };
}

/** The chunks of a text, and the length and SHA-256 of those that were pulled. */
function createSource(text: AsyncIterable<Uint8Array>, signal: AbortSignal) {
  const chunks = text[Symbol.asyncIterator]();
  const sha256 = createHash('sha256');
  let bytes = 0;
  let digest: Uint8Array = new Uint8Array();
  let isEnded = false;
  return {
    /** The next chunk, which holds until the next call; undefined at the end. */
    pull: async () => {
      signal.throwIfAborted();
      if (isEnded) return undefined;
      const { done, value } = await chunks.next();
      signal.throwIfAborted();
      if (done) {
        isEnded = true;
        digest = sha256.digest();
        return undefined;
      }
      sha256.update(value);
      bytes += value.length;
      return value;
    },
    made: () => ({ bytes, sha256: digest }),
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

/** Bytes that are in memory already. */
export function spoolBytes(bytes: Uint8Array): Spooled {
  return {
    bytes: bytes.length,
    sha256: hashOnce('sha256', bytes, 'buffer'),
    read: ({ start, end } = { start: 0, end: bytes.length }) =>
      Readable.from([bytes.subarray(start, end)], { objectMode: false }),
  };
}
