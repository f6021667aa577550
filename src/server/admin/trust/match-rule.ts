import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { matchesGlob } from '../../../protocol/glob.js';
import type { Identity } from '../../../protocol/identity.js';
import { storableText } from '../../database/storable-text.js';
import type { TrustRuleRow } from '../store/trust-rules.js';
import { NotTrusted } from './read-token.js';

const MAX_CLAIM_BYTES = 256;
const MAX_SUBJECT_BYTES = 1024;
const MAX_IDENTITY_BYTES = 4096;

/**
 * Why a rule does not accept the claims of a verified token; undefined if it does.
 *
 * @param ownAudience the audience of rules that name none
 */
export function findMismatch(
  { audience, conditions }: Pick<TrustRuleRow, 'audience' | 'conditions'>,
  claims: JsonObject,
  ownAudience: string,
): string | undefined {
  const wanted = audience || ownAudience;
  const given = [claims.aud].flat();
  if (!given.includes(wanted)) return `aud is ${shown(claims.aud)}, not ${wanted}`;
  for (const [name, pattern] of Object.entries(conditions)) {
    const value = claimText(claims, name);
    if (value === undefined || !matchesGlob(pattern, value))
      return `${name} is ${shown(Object.hasOwn(claims, name) ? claims[name] : undefined)}, not ${pattern}`;
  }
  return undefined;
}

/**
 * The identity of a verified token: the recorded claims that it has and that are a text, number, true or false of at most
 * 256 bytes. Throws NotTrusted if it has no subject, or if all of it is longer than 4 KiB of JSON.
 */
export function identityOf(
  { issuer, recordedClaims }: Pick<TrustRuleRow, 'issuer' | 'recordedClaims'>,
  claims: JsonObject,
): Identity {
  const subject = claims.sub;
  if (typeof subject !== 'string' || subject === '' || !isStorable(subject, MAX_SUBJECT_BYTES))
    throw new NotTrusted(`sub is not a text of 1 to ${MAX_SUBJECT_BYTES} bytes`);
  const recorded = recordedClaims.flatMap((name) => {
    const value = claimText(claims, name);
    return value === undefined || !isStorable(value, MAX_CLAIM_BYTES) ? [] : [[name, value] as const];
  });
  const identity = { issuer, subject, claims: Object.fromEntries(recorded) };
  if (Buffer.byteLength(JSON.stringify(identity)) > MAX_IDENTITY_BYTES)
    throw new NotTrusted(`the recorded claims are longer than ${MAX_IDENTITY_BYTES} bytes together`);
  return identity;
}

/** A claim that is a text, or the JSON text of one that is a number, true or false; undefined of another. */
function claimText(claims: JsonObject, name: string): string | undefined {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? JSON.stringify(value) : undefined;
}

function isStorable(text: string, maxBytes: number): boolean {
  return Buffer.byteLength(text) <= maxBytes && storableText(text) === text;
}

const MAX_SHOWN = 200;

function shown(value: JsonValue | undefined): string {
  return value === undefined ? 'missing' : JSON.stringify(value).slice(0, MAX_SHOWN);
}
