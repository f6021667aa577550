/** Frames of the signing protocol: a length of four bytes, big-endian, and so many bytes of JSON. */

/** A message: a JSON object of texts. */
export type Texts = Record<string, string>;

/** The longest frame, of either direction. A statement and its base64 take 3 KiB. */
const MAX_FRAME_BYTES = 64 * 1024;

const LENGTH_BYTES = 4;

/** Encodes a message as a frame. Throws RangeError if it is too long. */
export function encodeFrame(message: Texts): Buffer {
  const json = Buffer.from(JSON.stringify(message));
  if (json.length > MAX_FRAME_BYTES) throw new RangeError('a frame of the signing process is too long');
  const frame = Buffer.alloc(LENGTH_BYTES + json.length);
  frame.writeUInt32BE(json.length);
  json.copy(frame, LENGTH_BYTES);
  return frame;
}

/**
 * Returns a function that takes received bytes and returns the frames that they complete. It throws an Error if a frame
 * is too long, or is not a JSON object of texts; the message names the frame.
 */
export function frameReader(): (chunk: Uint8Array) => Texts[] {
  let held = Buffer.alloc(0);
  return (chunk) => {
    held = held.length === 0 ? Buffer.from(chunk) : Buffer.concat([held, chunk]);
    const frames: Texts[] = [];
    while (held.length >= LENGTH_BYTES) {
      const length = held.readUInt32BE();
      if (length > MAX_FRAME_BYTES) throw new Error('a frame that is too long');
      if (held.length < LENGTH_BYTES + length) break;
      frames.push(parseTexts(held.toString('utf8', LENGTH_BYTES, LENGTH_BYTES + length)));
      held = held.subarray(LENGTH_BYTES + length);
    }
    return frames;
  };
}

function parseTexts(json: string): Texts {
  const value: unknown = tryParse(json);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed();
  const entries = Object.entries(value);
  if (entries.some(([, text]) => typeof text !== 'string')) throw malformed();
  return Object.fromEntries(entries);
}

function tryParse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw malformed();
  }
}

function malformed(): Error {
  return new Error('a frame that is not a JSON object of texts');
}
