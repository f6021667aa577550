import type { Frame } from './frame-reader.js';
import { ConnectionError, DEFAULT_MAX_FRAME_SIZE, Http2Code, MAX_WINDOW_SIZE, Setting } from './protocol.js';

/** What a SETTINGS frame of a client changes for us. */
export type ChangedSettings = { headerTableSize: number | undefined; initialWindowSize: number | undefined };

/** An identifier of 16 bits and a value of 32 (RFC 9113, section 6.5.1). */
const ENTRY_BYTES = 6;
const LARGEST_FRAME_SIZE = 2 ** 24 - 1;

/**
 * Reads the payload of a SETTINGS frame (RFC 9113, section 6.5.2); of a parameter that comes twice the last value holds.
 * Throws a ConnectionError for a value out of bounds. We neither push nor send larger frames than the smallest that every
 * client takes, so that the other parameters change nothing.
 */
export function readSettings({ bytes, start, end }: Frame): ChangedSettings {
  if ((end - start) % ENTRY_BYTES !== 0) {
    throw new ConnectionError(Http2Code.FRAME_SIZE_ERROR, 'SETTINGS of another size');
  }
  const changed: ChangedSettings = { headerTableSize: undefined, initialWindowSize: undefined };
  for (let at = start; at < end; at += ENTRY_BYTES) {
    take(changed, bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2));
  }
  return changed;
}

function take(changed: ChangedSettings, id: number, value: number): void {
  if (id === Setting.HEADER_TABLE_SIZE) changed.headerTableSize = value;
  else if (id === Setting.INITIAL_WINDOW_SIZE) {
    if (value > MAX_WINDOW_SIZE) throw outOfBounds(Http2Code.FLOW_CONTROL_ERROR);
    changed.initialWindowSize = value;
  } else if (id === Setting.ENABLE_PUSH) {
    if (value > 1) throw outOfBounds(Http2Code.PROTOCOL_ERROR);
  } else if (id === Setting.MAX_FRAME_SIZE) {
    if (value < DEFAULT_MAX_FRAME_SIZE || value > LARGEST_FRAME_SIZE) {
      throw outOfBounds(Http2Code.PROTOCOL_ERROR);
    }
  }
}

function outOfBounds(code: number): ConnectionError {
  return new ConnectionError(code, 'a setting is out of its bounds');
}

/** The payload of our SETTINGS. */
export function writeSettings(entries: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(entries.length * ENTRY_BYTES);
  for (const [i, [id, value]] of entries.entries()) {
    payload.writeUInt16BE(id, i * ENTRY_BYTES);
    payload.writeUInt32BE(value, i * ENTRY_BYTES + 2);
  }
  return payload;
}
