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
  const unmet = Object.entries(conditions).find(
    ([name, pattern]) => !meets(claimText(claims, name), pattern),
  );
  if (unmet === undefined) return undefined;
  const [name, pattern] = unmet;
  return `${name} is ${shown(Object.hasOwn(claims, name) ? claims[name] : undefined)}, not ${pattern}`;
}

/**
 * Whether the claims about a person meet a condition: as those of a workload do, or by an item of a list, such as `groups`.
 * An e-mail address counts only if the provider says that it has verified it.
 */
export function meetsCondition(claims: JsonObject, name: string, pattern: string): boolean {
  if (name === 'email' && claims.email_verified !== true) return false;
  const list = Object.hasOwn(claims, name) ? claims[name] : undefined;
  if (!Array.isArray(list)) return meets(claimText(claims, name), pattern);
  return list.some((item) => typeof item === 'string' && matchesGlob(pattern, item));
}

function meets(value: string | undefined, pattern: string): boolean {
  return value !== undefined && matchesGlob(pattern, value);
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
