/** Objects for tests of destinations of exports. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { WriteControl } from '../../../src/server/exports/destinations/destination.js';
import type { ExportObject } from '../../../src/server/exports/destinations/object-store.js';

/** An object of a text. */
export function textObject(name: string, text: string, revision = 1): ExportObject {
  const content = Buffer.from(text);
  const read: ExportObject['read'] = ({ start, end } = { start: 0, end: content.length }) =>
    Readable.from([content.subarray(start, end)]);
  const sha256 = createHash('sha256').update(content).digest();
  return { name, contentType: 'application/x-ndjson', bytes: content.length, sha256, revision, read };
}

const PIECE_BYTES = 64 * 1024;

/** An object of so many bytes, which are made while they are read. Its SHA-256 is that of its length alone. */
export function largeObject(name: string, bytes: number, revision = 1): ExportObject {
  const read: ExportObject['read'] = ({ start, end } = { start: 0, end: bytes }) =>
    Readable.from(pieces(start, end), { objectMode: false });
  const sha256 = createHash('sha256').update(String(bytes)).digest();
  return { name, contentType: 'application/gzip', bytes, sha256, revision, read };
}

/** The MD5 of a large object's bytes, in base64. */
export function largeMd5(bytes: number): string {
  const hash = createHash('md5');
  for (const piece of pieces(0, bytes)) hash.update(piece);
  return hash.digest('base64');
}

/** Each piece of 64 KiB is filled with its number. */
function* pieces(start: number, end: number): Generator<Buffer> {
  for (let at = start; at < end; ) {
    const number = Math.floor(at / PIECE_BYTES);
    const next = Math.min(end, (number + 1) * PIECE_BYTES);
    yield Buffer.alloc(next - at, number % 251);
    at = next;
  }
}

/** How a write is bounded that nothing ends. */
export function control(overrides: Partial<WriteControl> = {}): WriteControl {
  return { signal: new AbortController().signal, isCurrent: async () => true, ...overrides };
}
