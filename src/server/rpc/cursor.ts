import { createHmac, timingSafeEqual } from 'node:crypto';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../core/errors.js';
import type { KeyRing } from '../keys/key-ring.js';

/** Makes and opens list cursors: where a page ended, authenticated and bound to the query it belongs to. */
export type Cursors = {
  /** `cur_` and base64url; no part of the position has a dot. `query` is everything the page depends on: project, filters. */
  seal(position: readonly (number | string)[], query: readonly unknown[]): string;
  /** The position, as texts; throws `cursor.invalid` when the cursor was not made for this query. Empty gives undefined. */
  open(cursor: string, query: readonly unknown[]): string[] | undefined;
};

const MAC_BYTES = 16;
const PREFIX = 'cur_';

/** @param keys sub-keys for cursors; the first makes new ones, all open */
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
      // Node skips what is no digit, and bits of the last digit that stand for nothing.
      const isAsSealed = cursor === PREFIX + bytes.toString('base64url');
      const body = bytes.subarray(MAC_BYTES).toString('latin1');
      const given = bytes.subarray(0, MAC_BYTES);
      const known = keys.some(
        (key) => given.length === MAC_BYTES && timingSafeEqual(mac(key, body, query), given),
      );
      if (!isAsSealed || !known) {
        throw new ApiError(
          ErrorCode.CURSOR_INVALID,
          'the cursor was not issued for this query; start again without one',
        );
      }
      return body.split('.');
    },
  };
}
