/** Steps 3 and 4: a trusted key signed the statement, and the leaf is of this signature. */

import { type EnvironmentName, environmentNumber } from '../../../protocol/environment.js';
import { toHex } from '../../bytes/encoding.js';
import { FormatError } from '../../bytes/format-error.js';
import { equalBytes, verifyEcdsaP256Sha256 } from '../../bytes/primitives.js';
import { leafHash } from '../../log/merkle.js';
import { dsseKeyHint, preAuthEncoding } from '../../statement/dsse.js';
import { type Leaf, parseLeafRecord, rebuildLeaf } from '../../statement/leaf.js';
import type { ParsedBundle } from '../read/parsed-bundle.js';
import { type Check, failed, missing, passed } from '../report.js';
import { isValidAt, type Trust, type TrustedDsseKey } from '../trust.js';

const SIGNATURE_PATH = '/sigstore_bundle/dsseEnvelope/signatures/0';

/** The trusted key that the bundle names, and whether it made the signature. Undefined without such a key. */
type Signer = { readonly key: TrustedDsseKey; readonly isValid: boolean };

/** Finds the signer and verifies the signature. */
export async function findSigner(
  { envelope, isErased }: ParsedBundle,
  trust: Trust,
): Promise<Signer | undefined> {
  const key = trust.dsseKeys.find(({ keyHint }) => keyHint === envelope.keyHint);
  if (isErased) return key && { key, isValid: false };
  return (
    key && { key, isValid: await verifyEcdsaP256Sha256(key.spki, signedBytes(envelope), envelope.signature) }
  );
}

function signedBytes({ payloadType, payload }: ParsedBundle['envelope']): Uint8Array {
  return preAuthEncoding(payloadType, payload);
}

/**
 * Checks the DSSE signature. The key must have been trusted at the earliest proven time, or now if none is proven: then
 * only the signer states when it signed. `isLogged`: whether a trusted log holds the entry.
 */
export async function checkSignature(
  parsed: ParsedBundle,
  signer: Signer | undefined,
  asked: {
    readonly environment: EnvironmentName;
    readonly now: Date;
    readonly existedBy: Date | undefined;
    readonly isLogged: boolean;
  },
): Promise<Check[]> {
  if (parsed.isErased) {
    return [missing('signature.no_statement', 'without the statement its signature cannot be checked')];
  }
  if (signer === undefined) return [await checkUnknownKey(parsed, asked.isLogged)];
  const { key, isValid } = signer;
  const checks: Check[] = [
    isValid
      ? passed('signature.valid', 'the statement is signed by a trusted key')
      : failed('signature.invalid', 'the signature over the statement is not valid', `${SIGNATURE_PATH}/sig`),
  ];
  if (key.environment !== environmentNumber(asked.environment)) {
    checks.push(failed('signature.wrong_environment', 'the signing key is of the other environment'));
  }
  const at = asked.existedBy ?? asked.now;
  if (!isValidAt(key, at)) {
    checks.push(failed('signature.key_not_valid', `the signing key was not trusted at ${at.toISOString()}`));
  }
  return checks;
}

/** A key whose entry a trusted log holds may be newer than the trust roots; any other is a stranger's. */
async function checkUnknownKey({ envelope, entry }: ParsedBundle, isLogged: boolean): Promise<Check> {
  const path = '/sigstore_bundle/verificationMaterial/publicKey/hint';
  const spki = isLogged ? findLoggedKey(entry.body, envelope) : undefined;
  const isSigned =
    spki !== undefined && (await verifyEcdsaP256Sha256(spki, signedBytes(envelope), envelope.signature));
  return isSigned
    ? missing(
        'signature.unknown_key',
        'a trusted log holds the entry, but its signing key is not in the trust roots: get a newer copy',
      )
    : failed('signature.untrusted_key', 'the signing key is not in the trust roots', path);
}

/** The key in the log's entry, if it is the one that the bundle names and the entry is of this signature. */
function findLoggedKey(body: Uint8Array, envelope: ParsedBundle['envelope']): Uint8Array | undefined {
  const record = findRecord(body);
  if (record === undefined || dsseKeyHint(record.publicKey) !== envelope.keyHint) return undefined;
  return equalBytes(rebuild(envelope, record.publicKey).record, body) ? record.publicKey : undefined;
}

function rebuild({ payload, signature, payloadType }: ParsedBundle['envelope'], spki: Uint8Array): Leaf {
  return rebuildLeaf(payload, signature, spki, payloadType);
}

function findRecord(body: Uint8Array) {
  try {
    return parseLeafRecord(body);
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}

/**
 * Rebuilds the leaf from statement, signature and trusted key, and compares it with the log's. `isIncluded`: whether the
 * log's tree has the entry; one of another form may be a newer one then.
 */
export function checkLeaf(
  { envelope, entry, submission, isErased }: ParsedBundle,
  signer: Signer | undefined,
  isIncluded: boolean,
): Check[] {
  const checks = [
    isErased ? checkErasedRecord(entry.body, signer) : checkRecord(envelope, entry.body, signer, isIncluded),
  ];
  if (submission.leafSha256 !== toHex(leafHash(entry.body))) {
    checks.push(
      failed('leaf.hash_mismatch', 'leaf_sha256 is not the hash of the leaf', '/submission/leaf_sha256'),
    );
  }
  return checks;
}

/** Of an erased statement, the record must name the trusted key. */
function checkErasedRecord(body: Uint8Array, signer: Signer | undefined): Check {
  if (signer === undefined) return missing('leaf.no_key', 'the key of the leaf is not in the trust roots');
  const record = findRecord(body);
  return record !== undefined && equalBytes(record.publicKey, signer.key.spki)
    ? missing('leaf.no_statement', 'the leaf names a trusted key, but its statement was erased')
    : failed('leaf.body_mismatch', 'the leaf record is not of the key that the bundle names');
}

function checkRecord(
  envelope: ParsedBundle['envelope'],
  body: Uint8Array,
  signer: Signer | undefined,
  isIncluded: boolean,
): Check {
  if (signer === undefined) return missing('leaf.no_key', 'without a trusted key the leaf cannot be rebuilt');
  if (equalBytes(rebuild(envelope, signer.key.spki).record, body)) {
    return passed('leaf.matches', 'the leaf is made of this statement and signature');
  }
  return isIncluded && findRecord(body) === undefined
    ? missing('leaf.unknown_form', 'the log holds an entry of a form that this version does not know')
    : failed(
        'leaf.body_mismatch',
        'the leaf record is not that of this statement and signature',
        '/sigstore_bundle/verificationMaterial/tlogEntries/0/canonicalizedBody',
      );
}
