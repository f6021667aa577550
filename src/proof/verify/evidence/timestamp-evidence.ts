/** Evidence of a time-stamping authority (RFC 3161): a TimeStampResp over SHA-256 of the checkpoint body. */
import type { JsonObject } from '@bufbuild/protobuf';
import { fromHex, utf8 } from '../../bytes/encoding.js';
import { TimestampError, type TimestampErrorCode } from '../../rfc3161/error.js';
import { signerName } from '../../rfc3161/signer-name.js';
import { verifyTimestamp } from '../../rfc3161/verify-timestamp.js';
import { isValidAt, type Trust, type TrustedTimestampAuthority } from '../trust.js';
import {
  type Evidence,
  type Finding,
  refuted,
  uncheckable,
  unknownWitness,
  vouched,
  wrongName,
} from './evidence.js';

/** Checks a time stamp against all chains of its authority, retired ones included: one trusted at genTime is enough. */
export async function checkTimestamp(evidence: Evidence, trust: Trust): Promise<Finding> {
  const authorities = trust.authorities.filter(({ name }) => name === evidence.witness.name);
  if (authorities.length === 0) return checkUnknownWitness(evidence, trust);
  const findings = await Promise.all(authorities.map((authority) => checkTimestampBy(authority, evidence)));
  const verified = findings.find(({ check }) => check.status === 'passed');
  const closest = findings.find(({ check }) => check.code !== 'witness.rfc3161.signer_untrusted');
  return verified ?? closest ?? stranger(evidence);
}

/** Codes of what only another version of this verifier can check. */
export const UNKNOWN_HERE: readonly TimestampErrorCode[] = [
  'algorithm_unsupported',
  'imprint_algorithm',
  'critical_extension',
];

/** The result for a name that the trust roots lack: unknown, or wrong if the stamp is by a listed authority. */
async function checkUnknownWitness(evidence: Evidence, trust: Trust): Promise<Finding> {
  const findings = await Promise.all(trust.authorities.map((known) => checkTimestampBy(known, evidence)));
  const isKnown = findings.some(({ check }) => check.status === 'passed');
  return isKnown ? wrongName(evidence) : unknownWitness(evidence);
}

/** The result for a certificate that the trust roots lack, as an older copy lacks a renewed one. */
function stranger(evidence: Evidence): Finding {
  const name = signerName(evidence.witness.evidence);
  const message = `the time stamp is by ${name}, whose certificate is not in the trust roots`;
  return uncheckable(evidence, 'rfc3161.signer_untrusted', message);
}

async function checkTimestampBy(authority: TrustedTimestampAuthority, evidence: Evidence): Promise<Finding> {
  const { witness, checkpoint } = evidence;
  try {
    const { bytes, member } = nonceOf(witness.detail);
    const { genTime, latest, policyOid, serial } = await verifyTimestamp({
      response: witness.evidence,
      stamped: { message: utf8(checkpoint.note.text) },
      chains: [authority.chain],
      nonce: bytes,
    });
    if (!isValidAt(authority, genTime)) {
      return refuted(evidence, 'not_trusted_then', `it was not trusted at ${genTime.toISOString()}`);
    }
    const detail = { policy_oid: policyOid, serial, gen_time: genTime.toISOString(), ...member };
    return vouched(evidence, latest, detail, authority.operator);
  } catch (error) {
    if (error instanceof TimestampError && UNKNOWN_HERE.includes(error.code)) {
      return uncheckable(evidence, `rfc3161.${error.code}`, error.message);
    }
    return error instanceof TimestampError
      ? refuted(evidence, `rfc3161.${error.code}`, error.message)
      : refuted(evidence, 'malformed', 'the time stamp cannot be read');
  }
}

/** The nonce in `detail`. It is confirmed if the token has the same one. */
function nonceOf(detail: JsonObject = {}): { bytes: Uint8Array | undefined; member: JsonObject } {
  if (!Object.hasOwn(detail, 'nonce')) return { bytes: undefined, member: {} };
  const nonce = String(detail.nonce);
  return { bytes: fromHex(nonce), member: { nonce } };
}
