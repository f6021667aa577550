import { createHash, hash as hashOnce, randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { ExportObject } from '../../export/destination.js';
import { type SpoolAccount, type SpoolBudget, SpoolYield } from './spool-budget.js';

/** The bytes of an object, which can be read any number of times until they are disposed of. */
type Spooled = Pick<ExportObject, 'bytes' | 'sha256' | 'read' | 'fill'> & { dispose(): Promise<void> };

/** An object up to this size stays in memory. */
const MEMORY_BYTES = 256 * 1024;
/** Chunks that are read: fewer, larger ones take less CPU. */
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
 * Writes text to a file without a name, so that its length and SHA-256 are known before it is sent and it can be sent again.
 * Short text stays in memory. Memory does not grow with the text. Waits for room in the budget, which may take several
 * attempts, each of which calls `render`.
 *
 * @param render makes the text; a chunk of it holds until the next is asked for
 */
export async function spool(
  render: () => AsyncIterable<Uint8Array>,
  { budget, projectId, ...options }: SpoolOptions,
): Promise<Spooled> {
  for (;;) {
    try {
      return await spoolOnce(render(), budget.open(projectId), options);
    } catch (error) {
      if (!(error instanceof SpoolYield)) throw error;
    }
  }
}

async function spoolOnce(
  chunks: AsyncIterable<Uint8Array>,
  account: SpoolAccount,
  { folder, isGzip, signal }: Pick<SpoolOptions, 'folder' | 'isGzip' | 'signal'>,
): Promise<Spooled> {
  const sha256 = createHash('sha256');
  const kept = createSink(folder, account, signal);
  const keep = async (source: AsyncIterable<Uint8Array>) => {
    for await (const chunk of source) {
      signal.throwIfAborted();
      sha256.update(chunk);
      await kept.add(chunk);
    }
  };
  try {
    if (isGzip)
      await pipeline(copyEach(chunks), createGzip({ level: GZIP_LEVEL, chunkSize: CHUNK_BYTES }), keep, {
        signal,
      });
    else await keep(chunks);
    return { ...kept.finish(), sha256: sha256.digest() };
  } catch (error) {
    await kept.dispose();
    throw error;
  }
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
    dispose: async () => {},
  };
}

/** A sink that keeps copies of chunks in memory, and writes them to a file once they are many. */
function createSink(folder: string, account: SpoolAccount, signal: AbortSignal) {
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  let file: FileHandle | undefined;
  const write = async (chunk: Uint8Array) => {
    await account.add(chunk.length, signal);
    file ??= await openNameless(folder);
    await file.appendFile(chunk);
  };
  const dispose = async () => {
    await file?.close();
    file = undefined;
    account.close();
  };
  const add = async (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (file === undefined && bytes <= MEMORY_BYTES) return void chunks.push(Buffer.from(chunk));
    const taken = [...chunks, chunk];
    chunks = [];
    for (const one of taken) await write(one);
  };
  const finish = () => {
    const whole = file === undefined ? Buffer.concat(chunks) : undefined;
    const read = ({ start, end } = { start: 0, end: bytes }) =>
      whole !== undefined
        ? Readable.from([whole.subarray(start, end)], { objectMode: false })
        : readFile(file, start, end);
    const fill = file && ((buffer: Uint8Array, start: number) => fillFrom(file, buffer, start));
    return { bytes, read, fill, dispose };
  };
  return { add, finish, dispose };
}

/** A file whose name is removed at once: it ends with its descriptor, even if the process is killed. */
async function openNameless(folder: string): Promise<FileHandle> {
  const path = join(folder, `attest-export-${randomUUID()}`);
  const file = await open(path, 'wx+', 0o600);
  await unlink(path);
  return file;
}

/** A stream of a part of a file. Unlike a `ReadStream`, which closes the file when it is destroyed, it leaves it open. */
function readFile(file: FileHandle | undefined, start: number, end: number): Readable {
  if (file === undefined) throw new Error('the object was disposed of');
  let position = start;
  return new Readable({
    highWaterMark: CHUNK_BYTES,
    read() {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - position));
      if (chunk.length === 0) {
        this.push(null);
        return;
      }
      fillFrom(file, chunk, position).then(
        () => {
          position += chunk.length;
          this.push(chunk);
        },
        (error: Error) => this.destroy(error),
      );
    },
  });
}

async function fillFrom(file: FileHandle | undefined, buffer: Uint8Array, start: number): Promise<void> {
  for (let filled = 0; filled < buffer.length; ) {
    if (file === undefined) throw new Error('the object was disposed of');
    const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, start + filled);
    if (bytesRead === 0) throw new Error('a temporary file has become shorter');
    filled += bytesRead;
  }
}
