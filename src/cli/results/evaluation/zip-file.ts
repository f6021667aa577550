/** Reads zip files of any size in bounded memory: stored, deflate, and the Zstandard of newer versions of inspect_ai. */
import { isUtf8 } from 'node:buffer';
import { pipeline, type Readable } from 'node:stream';
import { crc32, createInflateRaw } from 'node:zlib';
import { decompress } from 'fzstd';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { MAX_ENTRIES } from '../../../proof/set/entry.js';
import { printablePath } from '../../../proof/set/path.js';
import { UsageError } from '../../cli.js';

/** A file in a zip. `bytes` is its length as the directory has it, which reading checks. */
type ZipMember = { readonly name: string; readonly bytes: number };

type Located = ZipMember & Pick<Entry, 'compressedSize' | 'compressionMethod' | 'crc32'> & { offset: number };

/** An open zip file; `close` frees it. */
export type Zip = {
  readonly members: readonly ZipMember[];
  /** Yields the bytes of a member. Throws UsageError unless they are whole and have its length and CRC-32. */
  read(member: ZipMember): AsyncGenerator<Uint8Array>;
  close(): void;
};

const METHODS = { stored: 0, deflate: 8, zstd: 93 } as const;

/** Zstandard is decoded in one piece. inspect_ai begins another frame here, which the decoder does not join. */
const MAX_ZSTD_BYTES = 200 * 1024 * 1024;

/** The most that deflate makes of a byte, and what a small log may have beyond it. */
const MAX_RATIO = 1032;
const MIN_TOTAL_BYTES = 64 * 1024 * 1024;

const IS_ENCRYPTED = 1;
const IS_UTF8 = 0x800;
const ASCII = /^[\0-\x7f]*$/;

/**
 * Opens a zip file and reads its directory. Throws UsageError if it is truncated or no zip file, if members are encrypted,
 * overlap, have one name, or names that are not UTF-8, and if together they are larger than a real log can be.
 */
export async function openZip(path: string): Promise<Zip> {
  const failed = (error: Error) => {
    throw new UsageError(`${path} is no whole zip file: ${error.message}`);
  };
  const options = { lazyEntries: true, decodeStrings: false, autoClose: false };
  const file = await openPromise(path, options).catch(failed);
  try {
    const members = await readDirectory(path, file).catch((error: Error) => {
      if (error instanceof UsageError) throw error;
      return failed(error);
    });
    checkExtent(path, file.fileSize, members);
    const read = (member: ZipMember) => readMember(path, file, member as Located);
    return { members, read, close: () => file.close() };
  } catch (error) {
    file.close();
    throw error;
  }
}

async function readDirectory(path: string, file: ZipFile): Promise<Located[]> {
  if (file.entryCount > MAX_ENTRIES) throw new UsageError(`${path} has more than ${MAX_ENTRIES} members`);
  const members: Located[] = [];
  const names = new Set<string>();
  for await (const entry of file.eachEntry()) {
    const name = nameOf(path, entry);
    const where = `${printablePath(name)} in ${path}`;
    if (names.has(name)) throw new UsageError(`${where} occurs twice`);
    if (entry.generalPurposeBitFlag & IS_ENCRYPTED) throw new UsageError(`${where} is encrypted`);
    names.add(name);
    const { compressedSize, compressionMethod, uncompressedSize: bytes, crc32 } = entry;
    const offset = entry.relativeOffsetOfLocalHeader;
    members.push({ name, bytes, compressedSize, compressionMethod, crc32, offset });
  }
  return members;
}

function nameOf(path: string, { fileNameRaw: raw, generalPurposeBitFlag }: Entry): string {
  const name = raw.toString();
  if (isUtf8(raw) && (generalPurposeBitFlag & IS_UTF8 || ASCII.test(name))) return name;
  throw new UsageError(`${path} has a name that is not UTF-8: ${printablePath(raw.toString('latin1'))}`);
}

/** Zip bombs have members that overlap, or that would be larger than compression makes them. */
function checkExtent(path: string, size: number, members: readonly Located[]): void {
  const total = members.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total > Math.max(size * MAX_RATIO, MIN_TOTAL_BYTES))
    throw new UsageError(`${path} would be ${total} bytes unpacked, more than ${MAX_RATIO} times its size`);
  let end = 0;
  for (const { name, offset, compressedSize } of members.toSorted((a, b) => a.offset - b.offset)) {
    if (offset < end) throw new UsageError(`${printablePath(name)} in ${path} overlaps another member`);
    end = offset + compressedSize;
  }
}

async function* readMember(path: string, file: ZipFile, member: Located): AsyncGenerator<Uint8Array> {
  const where = `${printablePath(member.name)} in ${path}`;
  const failed = (problem: string) => new UsageError(`${where} ${problem}: the log is damaged`);
  let [bytes, sum] = [0, 0];
  try {
    for await (const piece of decode(await openRaw(file, member), member, where)) {
      bytes += piece.length;
      if (bytes > member.bytes) throw failed('is longer than its length says');
      sum = crc32(piece, sum);
      yield piece;
    }
  } catch (error) {
    throw error instanceof UsageError ? error : failed(`cannot be read (${(error as Error).message})`);
  }
  if (bytes !== member.bytes) throw failed('is shorter than its length says');
  if (sum !== member.crc32) throw failed('has another CRC-32 than its directory says');
}

/** The bytes of a member as they are stored. */
function openRaw(file: ZipFile, { offset, compressedSize }: Located): Promise<Readable> {
  return new Promise((resolve, reject) => {
    const entry = { relativeOffsetOfLocalHeader: offset, compressedSize } as Entry;
    file.readLocalFileHeader(entry, { minimal: true }, (error, header) => {
      if (error) return reject(error);
      const { fileDataStart: start } = header;
      file.openReadStreamLowLevel(start, compressedSize, 0, compressedSize, false, null, (error, stream) =>
        error ? reject(error) : resolve(stream),
      );
    });
  });
}

async function* decode(raw: Readable, member: Located, where: string): AsyncGenerator<Uint8Array> {
  const { compressionMethod: method, bytes, compressedSize } = member;
  if (method === METHODS.stored) return yield* raw;
  if (method === METHODS.deflate) {
    const inflate = createInflateRaw();
    pipeline(raw, inflate, () => {});
    return yield* inflate;
  }
  if (method !== METHODS.zstd)
    throw new UsageError(`${where} is compressed by method ${method}, not by deflate or zstd`);
  if (Math.max(bytes, compressedSize) > MAX_ZSTD_BYTES)
    throw new UsageError(`${where} has more than ${MAX_ZSTD_BYTES / 1024 ** 2} MiB, too many for zstd`);
  const unpacked = new Uint8Array(bytes);
  decompress(Buffer.concat(await raw.toArray()), unpacked);
  yield unpacked;
}
