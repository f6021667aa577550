import { createHmac, timingSafeEqual } from 'node:crypto';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../core/errors.js';
import type { KeyRing } from '../keys/key-ring.js';

/** Issues and reads list cursors. A cursor holds the position where a page ended, with a MAC over it and its query. */
export type Cursors = {
  /** Returns `cur_` and base64url. Parts of the position have no dot. `query`: all that the page depends on, such as project and filters. */
  seal(position: readonly (number | string)[], query: readonly unknown[]): string;
  /** Returns the position, undefined for ''. Throws `cursor.invalid` if the cursor was not issued for this query. */
  open(cursor: string, query: readonly unknown[]): string[] | undefined;
};

const MAC_BYTES = 16;
const PREFIX = 'cur_';

/** @param keys sub-keys for cursors: the first issues, all are accepted */
export function createCursors(keys: KeyRing): Cursors {
  const mac = (key: KeyRing[number], body: string, query: readonly unknown[]) =>
    createHmac('sha256', key.key)
      .update(JSON.stringify([body, query]))
      .digest()
      .subarray(0, MAC_BYTES);
  return {
    seal(position, query) {
      const body = position.join('.');
      return PREFIX + Buffer.concat([mac(keys[0], body, query), Buffer.from(body)]).toString('base64url');
    },
    open(cursor, query) {
      if (cursor === '') return undefined;
      const bytes = Buffer.from(cursor.slice(PREFIX.length), 'base64url');
      // Node ignores characters outside the alphabet and the unused bits of the last one.
      const isCanonical = cursor === PREFIX + bytes.toString('base64url');
      const body = bytes.subarray(MAC_BYTES).toString('latin1');
      const given = bytes.subarray(0, MAC_BYTES);
      const isIssued = keys.some(
        (key) => given.length === MAC_BYTES && timingSafeEqual(mac(key, body, query), given),
      );
      if (!isCanonical || !isIssued) {
        throw new ApiError(
          ErrorCode.CURSOR_INVALID,
          'the cursor was not issued for this query; start again without one',
        );
      }
      return body.split('.');
    },
  };
}
