import { crc32 } from 'node:zlib';
import { Environment, EnvironmentSchema } from '../../../gen/attestation/v1/environment_pb.js';
import { findBySpelling, spellingOf } from '../../protocol/enum-names.js';
import type { Principal } from '../core/principal.js';

/** What an API key says of itself without a look-up; `prefix` is `svc_live_` or `svc_test_`. */
export type ApiKeyParts = { environment: Principal['environment']; prefix: string; last4: string };

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_CHARACTERS = 32;
const CHECKSUM_CHARACTERS = 6;
const KEY_FORM = /^(svc_(live|test)_)[0-9A-Za-z]{38}$/;
const KEY_LENGTH = 47;

/**
 * A new API key: `svc_live_` or `svc_test_`, 32 random base62 characters (190 bits), and 6 that are the CRC-32 of
 * everything before them, so that a mistyped key is known without a look-up.
 *
 * @param randomBytes a cryptographic source of as many bytes as asked for
 */
export function createApiKey(
  environment: Principal['environment'],
  randomBytes: (size: number) => Uint8Array,
): string {
  const body = `svc_${spellingOf(EnvironmentSchema, environment)}_${randomBase62(randomBytes)}`;
  return body + checksum(body);
}

/** Takes an API key apart; undefined when it has another form or a wrong checksum. Says nothing of whether it exists. */
export function parseApiKey(text: string): ApiKeyParts | undefined {
  const match = text.length === KEY_LENGTH ? KEY_FORM.exec(text) : null;
  if (match === null) return undefined;
  if (checksum(text.slice(0, -CHECKSUM_CHARACTERS)) !== text.slice(-CHECKSUM_CHARACTERS)) return undefined;
  const environment = findBySpelling(EnvironmentSchema, match[2]!);
  if (environment !== Environment.LIVE && environment !== Environment.TEST) return undefined;
  return { environment, prefix: match[1]!, last4: text.slice(-4) };
}

/** Bytes from 248 on are thrown away: 248 is the largest multiple of 62 in a byte, so every character is as likely. */
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
