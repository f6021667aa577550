/** Decodes `Content-Encoding: aws-chunked` with unsigned chunks and a trailer. */
import { S3Error } from './s3-error.js';

/** Longer lines of a chunk's size or of a trailer are refused. */
const MAX_LINE_BYTES = 1024;
const MAX_TRAILERS = 8;

/** The chunks' data; the trailer's headers, with lower-case names, are put into `trailers` at the end. */
export async function* decodeAwsChunked(
  source: AsyncIterable<Buffer>,
  trailers: Map<string, string>,
): AsyncGenerator<Buffer> {
  const reader = new LineReader(source);
  for (;;) {
    const line = await reader.readLine();
    // An extension holds the signature of a signed chunk.
    if (!/^[0-9a-f]{1,8}$/i.test(line)) throw malformed();
    const bytes = Number.parseInt(line, 16);
    if (bytes === 0) break;
    yield* reader.read(bytes);
    if ((await reader.readLine()) !== '') throw malformed();
  }
  for (let line = await reader.readLine(); line !== ''; line = await reader.readLine()) {
    const [, name, value] = /^([a-z0-9-]+): *(\S+)$/i.exec(line) ?? [];
    if (name === undefined || value === undefined || trailers.size === MAX_TRAILERS) throw malformed();
    trailers.set(name.toLowerCase(), value);
  }
}

class LineReader {
  #rest: Buffer = Buffer.alloc(0);
  readonly #source: AsyncIterator<Buffer>;

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** A line without its CRLF. The end of the body ends the last one. */
  async readLine(): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf('\r\n');
      if (end > MAX_LINE_BYTES || (end < 0 && this.#rest.length > MAX_LINE_BYTES)) throw malformed();
      if (end >= 0) {
        const line = this.#rest.subarray(0, end).toString('latin1');
        this.#rest = this.#rest.subarray(end + 2);
        return line;
      }
      const next = await this.#source.next();
      if (next.done) throw new S3Error('IncompleteBody', 'The body ends within a chunk.');
      this.#rest = Buffer.concat([this.#rest, next.value]);
    }
  }

  /** The next bytes, as they come. */
  async *read(bytes: number): AsyncGenerator<Buffer> {
    for (let missing = bytes; missing > 0; ) {
      if (this.#rest.length === 0) {
        const next = await this.#source.next();
        if (next.done) throw new S3Error('IncompleteBody', 'The body ends within a chunk.');
        this.#rest = next.value;
      }
      const chunk = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(chunk.length);
      missing -= chunk.length;
      yield chunk;
    }
  }
}

function malformed(): S3Error {
  return new S3Error('InvalidRequest', 'The chunked body is malformed.');
}
