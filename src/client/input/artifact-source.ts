/** Artifacts as callers give them: what is left of a stream that was read before has another SHA-256 than the artifact. */
import { isAttached } from './options.js';
import { kindOf } from './plain-json.js';

/** Streams and iterators that were taken, perhaps without a byte read yet. */
const TAKEN = new WeakSet<object>();

/** Takes an artifact to read it. Throws TypeError if it is none, or was read before and cannot be read again. */
export function takeSource(source: unknown): void {
  if (typeof source === 'string' || source instanceof Blob) return;
  if (source instanceof Uint8Array) {
    if (isAttached(source)) return;
    throw new TypeError('the bytes of the artifact are not there any more: their buffer was transferred');
  }
  if (!isStream(source)) {
    const kinds = 'a path, a Uint8Array, a Blob or a stream of Uint8Array';
    throw new TypeError(`an artifact is ${kinds}, not ${kindOf(source)}`);
  }
  if (TAKEN.has(source) || isReadBefore(source)) {
    throw new TypeError(
      'the stream was read before, and what is left is not the artifact: give a new stream',
    );
  }
  if (isOneShot(source)) TAKEN.add(source);
}

/** Throws TypeError if what was read, in so many pieces, cannot be all of the artifact. */
export function assertWhole(
  source: unknown,
  read: { readonly pieces: number; readonly bytes: number },
): void {
  if (source instanceof Blob && read.bytes !== source.size) {
    throw new TypeError(`${read.bytes} of the ${source.size} bytes of the Blob could be read`);
  }
  // An ended iterator and an empty one look the same.
  if (read.pieces === 0 && isIterator(source)) {
    throw new TypeError(
      'the iterator yields nothing: was it read before? An empty artifact is new Uint8Array()',
    );
  }
}

function isStream(source: unknown): source is object {
  if (typeof source !== 'object' || source === null) return false;
  return Symbol.asyncIterator in source || source instanceof ReadableStream;
}

/** Whether reading it uses it up. Others may open anew for each reader. */
function isOneShot(source: object): boolean {
  return source instanceof ReadableStream || isIterator(source) || 'readable' in source;
}

/** Whether it is an iterator itself, as the objects of generator functions are. */
function isIterator(source: unknown): boolean {
  return typeof source === 'object' && source !== null && 'next' in source && Symbol.asyncIterator in source;
}

function isReadBefore(source: object): boolean {
  const node = globalThis.process?.getBuiltinModule?.('node:stream');
  if (node !== undefined) return node.Readable.isDisturbed(source as never);
  return source instanceof ReadableStream && !isBody(source);
}

/** In browsers, only an unread, unlocked stream can be a body: others are a TypeError. */
function isBody(stream: ReadableStream): boolean {
  try {
    return !new Response(stream).bodyUsed;
  } catch (error) {
    return !(error instanceof TypeError);
  }
}
