import { crc32 } from 'node:zlib';
import { Environment, EnvironmentSchema } from '../../../gen/attestation/v1/environment_pb.js';
import { enumName, findEnumNumber } from '../../protocol/enum-names.js';
import type { Principal } from '../core/principal.js';

/** The parts of an API key that are known without a look-up; `prefix` is `svc_live_` or `svc_test_`. */
type ApiKeyParts = { environment: Principal['environment']; prefix: string; last4: string };

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_CHARACTERS = 32;
const CHECKSUM_CHARACTERS = 6;
const KEY_FORM = /^(svc_(live|test)_)[0-9A-Za-z]{38}$/;
const KEY_LENGTH = 47;

/**
 * Creates an API key: `svc_live_` or `svc_test_`, 32 random base62 characters (190 bits), and the CRC-32 of all that in
 * 6 characters, so that a mistyped key is rejected without a look-up.
 *
 * @param randomBytes a cryptographic source of that many bytes
 */
export function createApiKey(
  environment: Principal['environment'],
  randomBytes: (size: number) => Uint8Array,
): string {
  const body = `svc_${enumName(EnvironmentSchema, environment)}_${randomBase62(randomBytes)}`;
  return body + checksum(body);
}

/** Parses an API key. Returns undefined if its form or its checksum is wrong. Does not look it up. */
export function parseApiKey(text: string): ApiKeyParts | undefined {
  const match = text.length === KEY_LENGTH ? KEY_FORM.exec(text) : null;
  if (match === null) return undefined;
  if (checksum(text.slice(0, -CHECKSUM_CHARACTERS)) !== text.slice(-CHECKSUM_CHARACTERS)) return undefined;
  const environment = findEnumNumber(EnvironmentSchema, match[2]!);
  if (environment !== Environment.LIVE && environment !== Environment.TEST) return undefined;
  return { environment, prefix: match[1]!, last4: text.slice(-4) };
}

/** Drops bytes from 248 on, the largest multiple of 62 in a byte, so that all characters are equally likely. */
function randomBase62(randomBytes: (size: number) => Uint8Array): string {
  let text = '';
  while (text.length < RANDOM_CHARACTERS) {
    const fair = [...randomBytes(RANDOM_CHARACTERS - text.length)].filter((byte) => byte < 248);
    text += fair.map((byte) => BASE62[byte % 62]).join('');
  }
  return text;
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let place = 0; place < CHECKSUM_CHARACTERS; place++) {
    text = BASE62[rest % 62] + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}
