/**
 * Verification of RFC 3161 time stamps against certificate chains given by the caller. Pure: no clock, no network; a
 * chain is judged at the stamp's own genTime.
 */

import { toHex } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { equalBytes } from '../bytes/primitives.js';
import { digest, hashName, isHash, SHA256_OID, verifySignature } from './algorithm.js';
import { type Certificate, parseCertificate } from './certificate.js';
import { checkChain } from './chain.js';
import { TimestampError } from './error.js';
import { nameText } from './name.js';
import { checkEssCertificate, checkSignedContent, readSignedAttributes } from './signed-attributes.js';
import { checkUsage, isNamedBy, signerCandidates } from './signer.js';
import { parseResponse, type Token } from './token.js';
import type { TstInfo } from './tst-info.js';

/** Inputs of the check of a time stamp. */
export type TimestampExpectation = {
  /** The whole TimeStampResp, DER. */
  response: Uint8Array;
  /** The expected content: a SHA-256 digest of 32 bytes, or a message by its SHA-256, SHA-384 or SHA-512 digest. */
  stamped: { readonly digest: Uint8Array } | { readonly message: Uint8Array };
  /** The request's nonce, big-endian, leading zeros ignored. The token must have the same one if it is given. */
  nonce?: Uint8Array | undefined;
  /**
   * Trusted chains, DER certificates: the authority's own certificate first, each issued by the next, root last. The
   * signer must be the first certificate of one of them, byte for byte: a new certificate is trusted when a chain is added.
   */
  chains: readonly (readonly Uint8Array[])[];
  /** The required policy of the token; any by default. */
  policyOid?: string | undefined;
};

/**
 * `genTime` is what the stamp states, cut to milliseconds. The proven time is `latest`: genTime plus its accuracy, or
 * without one genTime plus one unit of its last digit. `serial` is lower-case hex,
 * after a minus sign if it is negative; `subject` is the signer's name (RFC 4514).
 */
type VerifiedTimestamp = {
  genTime: Date;
  latest: Date;
  serial: string;
  policyOid: string;
  subject: string;
};

/**
 * Verifies a granted response: the imprint, nonce and policy, who signed it and that the chain held at genTime. Throws
 * TimestampError, whose code names the check that failed. Revocation is not checked: retire a chain to distrust it.
 */
export async function verifyTimestamp(expected: TimestampExpectation): Promise<VerifiedTimestamp> {
  try {
    const token = parseResponse(expected.response);
    await checkImprint(token.tstInfo, expected.stamped);
    checkTstInfo(token.tstInfo, expected);
    const signer = await checkSigner(token, expected.chains);
    // Only of what an authority has signed: anything else was changed.
    checkKnown(token.tstInfo, expected.stamped);
    const { genTime, latest, serial, policyOid } = token.tstInfo;
    return { genTime, latest, serial: hexOf(serial), policyOid, subject: nameText(signer.subject) };
  } catch (error) {
    if (error instanceof FormatError) throw new TimestampError('malformed', error.message, { cause: error });
    throw error;
  }
}

async function checkImprint({ imprint }: TstInfo, stamped: TimestampExpectation['stamped']): Promise<void> {
  const { hashOid } = imprint;
  if (!isKnownImprint(hashOid, stamped)) return;
  const wanted = 'digest' in stamped ? stamped.digest : await digest(hashName(hashOid), stamped.message);
  if (imprint.digest.length !== wanted.length || (hashOid === SHA256_OID && wanted.length !== 32)) {
    throw new TimestampError(
      'imprint_length',
      'the imprint is shorter or longer than its algorithm’s digest',
    );
  }
  if (!equalBytes(imprint.digest, wanted)) {
    throw new TimestampError('imprint_mismatch', 'the stamp is over another digest');
  }
}

function isKnownImprint(hashOid: string, stamped: TimestampExpectation['stamped']): boolean {
  return hashOid === SHA256_OID || ('message' in stamped && isHash(hashOid));
}

function checkTstInfo({ nonce, policyOid }: TstInfo, expected: TimestampExpectation): void {
  if (expected.nonce !== undefined) checkNonce(nonce, expected.nonce);
  if (expected.policyOid !== undefined && policyOid !== expected.policyOid) {
    throw new TimestampError(
      'policy_mismatch',
      `the stamp is under policy ${policyOid}, not ${expected.policyOid}`,
    );
  }
}

/** Refuses what this version does not understand. */
function checkKnown({ imprint, extensions }: TstInfo, stamped: TimestampExpectation['stamped']): void {
  const { hashOid } = imprint;
  if (!isKnownImprint(hashOid, stamped)) {
    throw new TimestampError('imprint_algorithm', `the imprint's algorithm is ${hashOid}, not SHA-256`);
  }
  const critical = extensions.find((extension) => extension.critical);
  if (critical !== undefined) {
    throw new TimestampError(
      'critical_extension',
      `the stamp has the unknown critical extension ${critical.oid}`,
    );
  }
}

function checkNonce(actual: bigint | undefined, expected: Uint8Array): void {
  if (actual === undefined) throw new TimestampError('nonce_missing', 'the stamp has no nonce');
  if (actual !== BigInt(`0x0${toHex(expected)}`))
    throw new TimestampError('nonce_mismatch', 'the stamp has the nonce of another request');
}

/** Hex of whole octets. */
function hexOf(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString(16);
  return `${value < 0n ? '-' : ''}${digits.length % 2 === 0 ? '' : '0'}${digits}`;
}

/** Checks signature, signed attributes and chain. Returns the signer's certificate. */
async function checkSigner(token: Token, chains: TimestampExpectation['chains']): Promise<Certificate> {
  const { signer: signerInfo } = token;
  const attributes = readSignedAttributes(signerInfo);
  await checkSignedContent(attributes, token);
  const leaves = chains.flatMap((chain) => chain.slice(0, 1));
  const candidates = signerCandidates(token, leaves);
  const signer = candidates.find(({ raw }) => leaves.some((leaf) => equalBytes(leaf, raw)));
  if (signer === undefined) throw untrusted(token, candidates, chains);
  await checkEssCertificate(attributes, signer);
  checkUsage(signer);
  const signed = signerInfo.signedAttributes.raw;
  if (!(await verifySignature(signer.spki, signerInfo, signed, signerInfo.signature))) {
    throw new TimestampError('signature', "the signature is not by the signer's key");
  }
  await checkAnyChain(
    chains.filter(([leaf]) => leaf !== undefined && equalBytes(leaf, signer.raw)),
    token.tstInfo.genTime,
  );
  return signer;
}

function untrusted(
  token: Token,
  candidates: readonly Certificate[],
  chains: TimestampExpectation['chains'],
): TimestampError {
  const isInside = chains.flat().some((trusted) => candidates.some(({ raw }) => equalBytes(raw, trusted)));
  const isNamed = chains.some(
    ([leaf]) => leaf !== undefined && isNamedBy(token.signer.sid, parseCertificate(leaf)),
  );
  if (isNamed && !isInside) {
    const message = "the signer's certificate has issuer and serial number of a trusted one, and is not it";
    return new TimestampError('signer_mismatch', message);
  }
  return isInside
    ? new TimestampError(
        'chain_order',
        "the signer's certificate is in a trusted chain, but not its first one",
      )
    : new TimestampError('signer_untrusted', 'the signer is not the first certificate of any trusted chain');
}

/** One valid chain is enough: an authority that is cross-signed, or renewed under the same certificate, has several. */
async function checkAnyChain(chains: TimestampExpectation['chains'], at: Date): Promise<void> {
  const results = await Promise.allSettled(chains.map((chain) => checkChain(chain, at)));
  if (results.some(({ status }) => status === 'fulfilled')) return;
  throw results.find((result) => result.status === 'rejected')?.reason;
}
