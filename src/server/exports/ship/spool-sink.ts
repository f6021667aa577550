/** Stores the bytes of an object, in memory or a temporary file, until they are sent. */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { SpoolAccount } from './spool-budget.js';

/** An object up to this size stays in memory. */
const MEMORY_BYTES = 256 * 1024;
/** Chunks that are read: fewer, larger ones take less CPU. */
const CHUNK_BYTES = 256 * 1024;

/** A sink of chunks: copies in memory up to 256 KiB, a temporary file beyond. */
export function createSink(folder: string, account: SpoolAccount, signal: AbortSignal) {
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  let file: FileHandle | undefined;
  let whole: Uint8Array | undefined;
  const write = async (chunk: Uint8Array) => {
    await account.add(chunk.length, signal);
    file ??= await openNameless(folder);
    await file.appendFile(chunk);
  };
  const dispose = async () => {
    await file?.close();
    file = undefined;
    whole = undefined;
    chunks = [];
    account.close();
  };
  const add = async (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (file === undefined && bytes <= MEMORY_BYTES) return void chunks.push(Buffer.from(chunk));
    const taken = [...chunks, chunk];
    chunks = [];
    for (const one of taken) await write(one);
  };
  const read = ({ start, end } = { start: 0, end: bytes }) =>
    whole === undefined
      ? readFile(file, start, end)
      : Readable.from([whole.subarray(start, end)], { objectMode: false });
  const fill = async (buffer: Uint8Array, start: number) => {
    if (chunks.length === 0) await fillFrom(file, buffer, start);
    else buffer.set(Buffer.concat(chunks).subarray(start, start + buffer.length));
  };
  const finish = () => {
    if (file === undefined) whole = Buffer.concat(chunks);
    return { read, fill: file && fill };
  };
  return { add, fill, finish, dispose, bytes: () => bytes };
}

/** Opens a file and unlinks it: the system frees it with its descriptor, even if the process is killed. */
async function openNameless(folder: string): Promise<FileHandle> {
  const path = join(folder, `attest-export-${randomUUID()}`);
  const file = await open(path, 'wx+', 0o600);
  await unlink(path);
  return file;
}

/** Streams a part of a file, and leaves the file open; a `ReadStream` would close it when it is destroyed. */
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
