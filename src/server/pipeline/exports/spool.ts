import { createHash, hash as hashOnce } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { ExportObject, GrowingObject } from '../../export/destination.js';
import { type SpoolAccount, type SpoolBudget, SpoolYield } from './spool-budget.js';
import { createSink } from './spool-sink.js';

/** The bytes of an object, which can be read any number of times until they are disposed of. */
type Spooled = Pick<ExportObject, 'bytes' | 'sha256' | 'read' | 'fill'>;

/** The bytes of an object while they are being made. */
type Spooling = Pick<GrowingObject, 'grown' | 'read' | 'fill'> & { readonly whole: Promise<Spooled> };

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

/**
 * Writes text to a file without a name, so that its length and SHA-256 are known before all of it is sent, and it can be
 * sent again. Short text stays in memory. Memory does not grow with the text. Waits for room in the budget, which may take
 * several attempts, each of which calls `render` and `use`.
 *
 * @param render makes the text; a chunk of it holds until the next is asked for
 * @param use is called while the text is being made, which ends with it
 * @returns what `use` does
 */
export async function spool<T>(
  render: () => AsyncIterable<Uint8Array>,
  { budget, projectId, ...options }: SpoolOptions,
  use: (spooling: Spooling) => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await spoolOnce(render(), { account: budget.open(projectId), ...options }, use);
    } catch (error) {
      if (!(error instanceof SpoolYield)) throw error;
    }
  }
}

type Attempt = Pick<SpoolOptions, 'folder' | 'isGzip' | 'signal'> & { account: SpoolAccount };

async function spoolOnce<T>(
  chunks: AsyncIterable<Uint8Array>,
  { folder, account, isGzip, signal }: Attempt,
  use: (spooling: Spooling) => Promise<T>,
): Promise<T> {
  const unused = new AbortController();
  const either = AbortSignal.any([signal, unused.signal]);
  const sink = createSink(folder, account, either);
  const whole = fillSink(sink, chunks, { isGzip, signal: either }).then(
    (sha256) => ({ ...sink.finish(), sha256 }),
    (error: Error) => {
      sink.fail(error);
      throw error;
    },
  );
  whole.catch(() => {});
  try {
    return await use({ grown: sink.grown, read: sink.read, fill: sink.fill, whole });
  } finally {
    unused.abort(new Error('the object is not wanted any more'));
    await whole.catch(() => {});
    await sink.dispose();
  }
}

/** Returns the SHA-256 of what is kept. */
async function fillSink(
  sink: Pick<ReturnType<typeof createSink>, 'add'>,
  chunks: AsyncIterable<Uint8Array>,
  { isGzip, signal }: Pick<SpoolOptions, 'isGzip' | 'signal'>,
): Promise<Uint8Array> {
  const sha256 = createHash('sha256');
  const keep = async (source: AsyncIterable<Uint8Array>) => {
    for await (const chunk of source) {
      signal.throwIfAborted();
      sha256.update(chunk);
      await sink.add(chunk);
    }
  };
  if (isGzip) {
    const gzip = createGzip({ level: GZIP_LEVEL, chunkSize: CHUNK_BYTES });
    await pipeline(copyEach(chunks), gzip, keep, { signal });
  } else await keep(chunks);
  return sha256.digest();
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
