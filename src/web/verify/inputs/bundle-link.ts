/** A bundle as the fragment of a link: deflated, in base64url. Fragments stay in the browser: no server sees them. */
import { fromBase64, toBase64 } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';

/** What a link to the page names. */
type LinkTarget = { kind: 'bundle'; bundle: Uint8Array } | { kind: 'id'; id: string };

/** Longer links are cut by mail programs and chats. */
const MAX_OFFERED_CHARACTERS = 32_000;
const MAX_READ_CHARACTERS = 256 * 1024;
/** A few bytes can inflate to gigabytes. */
const MAX_INFLATED_BYTES = 1024 * 1024;
const FRAGMENT = /^#(bundle|id)=([A-Za-z0-9_-]*)$/;

/** The fragment that carries a bundle, with its `#`. Returns undefined if the link would be too long to be sent. */
export async function bundleFragment(bundle: Uint8Array): Promise<string | undefined> {
  const deflated = await pipe(bundle, new CompressionStream('deflate-raw'), Number.POSITIVE_INFINITY);
  const text = toBase64(deflated).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  return text.length > MAX_OFFERED_CHARACTERS ? undefined : `#bundle=${text}`;
}

/** Reads a fragment. Returns undefined if there is none. Throws FormatError if it carries nothing that can be read. */
export async function readFragment(fragment: string): Promise<LinkTarget | undefined> {
  if (fragment === '' || fragment === '#') return undefined;
  if (fragment.length > MAX_READ_CHARACTERS) throw new FormatError('the link is too long');
  const [, kind, value = ''] = FRAGMENT.exec(fragment) ?? [];
  if (kind === 'id') return { kind, id: value };
  if (kind === undefined || value === '') throw new FormatError('the link carries no proof bundle');
  return { kind: 'bundle', bundle: await inflate(value) };
}

async function inflate(text: string): Promise<Uint8Array> {
  try {
    const base64 = text.replaceAll('-', '+').replaceAll('_', '/');
    const deflated = fromBase64(base64.padEnd(Math.ceil(base64.length / 4) * 4, '='));
    return await pipe(deflated, new DecompressionStream('deflate-raw'), MAX_INFLATED_BYTES);
  } catch (error) {
    if (error instanceof RangeError) throw new FormatError(error.message);
    throw new FormatError('the link is damaged or cut off: ask for it again, or for the bundle as a file');
  }
}

/** Throws RangeError once more than `maxBytes` come out. */
async function pipe(
  bytes: Uint8Array,
  through: CompressionStream | DecompressionStream,
  maxBytes: number,
): Promise<Uint8Array> {
  const reader = new Blob([new Uint8Array(bytes)]).stream().pipeThrough(through).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    length += part.value.length;
    if (length > maxBytes) {
      await reader.cancel();
      throw new RangeError('the link carries more than 1 MiB, which no proof bundle has');
    }
    parts.push(part.value);
  }
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}
