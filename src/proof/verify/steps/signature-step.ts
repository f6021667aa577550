/** Steps 3 and 4: a trusted key signed the statement, and the leaf is of this signature. */

import { type EnvironmentName, environmentNumber } from '../../../protocol/environment.js';
import { toHex } from '../../bytes/encoding.js';
import { equalBytes, verifyEcdsaP256Sha256 } from '../../bytes/primitives.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../statement/dsse.js';
import { type Leaf, rebuildLeaf } from '../../statement/leaf.js';
import type { ParsedBundle } from '../read/parsed-bundle.js';
import { type Check, failed, missing, passed } from '../report.js';
import { isValidAt, type Trust, type TrustedDsseKey } from '../trust.js';

const SIGNATURE_PATH = '/sigstore_bundle/dsseEnvelope/signatures/0';

/**
 * Checks the DSSE signature. The key must have been trusted at the earliest proven time, or now if none is proven: then
 * only the signer states when it signed.
 */
export async function checkSignature(
  { envelope }: ParsedBundle,
  trust: Trust,
  asked: { readonly environment: EnvironmentName; readonly now: Date; readonly existedBy: Date | undefined },
): Promise<Check[]> {
  const key = findKey(envelope.keyHint, trust);
  if (key === undefined) {
    return [
      failed(
        'signature.untrusted_key',
        'the signing key is not in the trust roots',
        '/sigstore_bundle/verificationMaterial/publicKey/hint',
      ),
    ];
  }
  const checks: Check[] = [];
  const pae = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, envelope.payload);
  checks.push(
    (await verifyEcdsaP256Sha256(key.spki, pae, envelope.signature))
      ? passed('signature.valid', 'the statement is signed by a trusted key')
      : failed('signature.invalid', 'the signature over the statement is not valid', `${SIGNATURE_PATH}/sig`),
  );
  if (key.environment !== environmentNumber(asked.environment)) {
    checks.push(failed('signature.wrong_environment', 'the signing key is of the other environment'));
  }
  const at = asked.existedBy ?? asked.now;
  if (!isValidAt(key, at)) {
    checks.push(failed('signature.key_not_valid', `the signing key was not trusted at ${at.toISOString()}`));
  }
  return checks;
}

/** Rebuilds the leaf from statement, signature and trusted key, and compares it with the log's. */
export function checkLeaf({ envelope, entry, submission }: ParsedBundle, trust: Trust): Check[] {
  const key = findKey(envelope.keyHint, trust);
  if (key === undefined) return [missing('leaf.no_key', 'without a trusted key the leaf cannot be rebuilt')];
  const leaf: Leaf = rebuildLeaf(envelope.payload, envelope.signature, key.spki);
  const checks = [
    equalBytes(leaf.record, entry.body)
      ? passed('leaf.matches', 'the leaf is made of this statement and signature')
      : failed(
          'leaf.body_mismatch',
          'the leaf record is not that of this statement and signature',
          '/sigstore_bundle/verificationMaterial/tlogEntries/0/canonicalizedBody',
        ),
  ];
  if (submission.leafSha256 !== toHex(leaf.hash)) {
    checks.push(
      failed('leaf.hash_mismatch', 'leaf_sha256 is not the hash of the leaf', '/submission/leaf_sha256'),
    );
  }
  return checks;
}

function findKey(keyHint: string, trust: Trust): TrustedDsseKey | undefined {
  return trust.dsseKeys.find((key) => key.keyHint === keyHint);
}
