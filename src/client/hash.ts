/** SHA-256 of artifacts of any size. */
import { toHex } from '../proof/bytes/encoding.js';
import { createSha256 } from '../proof/bytes/primitives.js';
import { assertWhole, takeSource } from './input/artifact-source.js';
import { checkOptions, FUNCTION, type OptionChecks, SIGNAL } from './input/options.js';

/** An artifact's bytes. A string is the path of a file (Node only). */
export type ArtifactSource =
  | string
  | Uint8Array
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>;

export type HashOptions = {
  readonly signal?: AbortSignal | undefined;
  /** Called with the size in bytes of each chunk read. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
};

const OPTIONS: OptionChecks<HashOptions> = { signal: SIGNAL, onBytes: FUNCTION };

/**
 * Returns the SHA-256 in lower-case hex. Streams the artifact, so memory does not grow with its size. Throws TypeError if
 * the artifact is none, or a stream that was read before: its hash would be that of the rest.
 */
export async function hashArtifact(source: ArtifactSource, options: HashOptions = {}): Promise<string> {
  checkOptions(options, OPTIONS);
  takeSource(source);
  const { signal, onBytes } = options;
  const hash = createSha256();
  const read = { pieces: 0, bytes: 0 };
  for await (const piece of untilAborted(piecesOf(source), signal)) {
    if (!(piece instanceof Uint8Array)) throw new TypeError('an artifact is a stream of Uint8Array');
    hash.update(piece);
    read.pieces++;
    read.bytes += piece.length;
    onBytes?.(piece.length);
  }
  assertWhole(source, read);
  return toHex(hash.digest());
}

/** Yields chunks until the signal aborts. Does not wait for a source that hangs then. */
async function* untilAborted(
  pieces: AsyncGenerator<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncIterable<Uint8Array> {
  if (signal === undefined) return yield* pieces;
  try {
    for (;;) {
      signal.throwIfAborted();
      const { done, value } = await unlessAborted(pieces.next(), signal);
      if (done) return;
      yield value;
    }
  } finally {
    const ended = pieces.return(undefined);
    if (!signal.aborted) await ended;
    else ended.catch(() => {});
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

async function* piecesOf(source: ArtifactSource): AsyncGenerator<Uint8Array> {
  if (typeof source === 'string') yield* openFile(source);
  else if (source instanceof Uint8Array) yield source;
  else yield* readPieces(source instanceof Blob ? source.stream() : source);
}

function openFile(path: string): AsyncIterable<Uint8Array> {
  const fs = findNodeFs();
  if (fs === undefined) throw new TypeError('a path can be read in Node only; hand over the File');
  return fs.createReadStream(path, { highWaterMark: 1024 * 1024 });
}

/** Uses a reader, because not every browser can iterate a web stream. */
async function* readPieces(
  source: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  if (!(source instanceof ReadableStream)) return yield* source;
  const reader: ReadableStreamDefaultReader<Uint8Array> = source.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    // A consumer that stops early does not want the rest; at the end there is nothing left to cancel.
    await reader.cancel();
  }
}

/** Node's fs without an import, which would keep this file from loading in a browser. */
function findNodeFs(): typeof import('node:fs') | undefined {
  return globalThis.process?.getBuiltinModule?.('node:fs');
}
