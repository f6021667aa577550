/** What a time-stamping authority is asked (RFC 3161, section 2.4.1). */
import { contextTag, type DerNode, parseDer, TAG } from '../../proof/asn1/der.js';
import {
  booleanValue,
  membersOf,
  objectIdentifier,
  smallInteger,
  unsignedInteger,
} from '../../proof/asn1/der-read.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { SHA256_OID } from '../../proof/rfc3161/algorithm.js';

/** Bits of PKIFailureInfo that are answered with (RFC 3161, section 2.4.2). */
export type FailureBit =
  | 'badAlg'
  | 'badRequest'
  | 'badDataFormat'
  | 'unacceptedPolicy'
  | 'unacceptedExtension';

/** A request that is answered with a rejection; the message becomes its status text. */
export class TimestampRejection extends Error {
  override readonly name = 'TimestampRejection';

  constructor(
    readonly failure: FailureBit,
    message: string,
  ) {
    super(message);
  }
}

/** `imprint` and `nonce` are DER as they came: they are repeated in the stamp. */
export type TimestampQuery = {
  imprint: Uint8Array;
  nonce: Uint8Array | undefined;
  wantsCertificate: boolean;
};

const MAX_REQUEST_BYTES = 4096;
const MAX_NONCE_BYTES = 32;

const DIGEST_BYTES: ReadonlyMap<string, number> = new Map([
  [SHA256_OID, 32],
  ['2.16.840.1.101.3.4.2.2', 48],
  ['2.16.840.1.101.3.4.2.3', 64],
]);

/** Reads a request of at most 4 KiB for a stamp under `policyOid`. Throws TimestampRejection for whatever is not served. */
export function parseTimestampRequest(der: Uint8Array, policyOid: string): TimestampQuery {
  try {
    return readRequest(parseDer(der, MAX_REQUEST_BYTES), policyOid);
  } catch (error) {
    if (error instanceof FormatError) throw new TimestampRejection('badDataFormat', error.message);
    throw error;
  }
}

function readRequest(node: DerNode, policyOid: string): TimestampQuery {
  const members = membersOf(node, 'TimeStampReq');
  const version = smallInteger(members.takeAny(), 'version');
  if (version !== 1) throw new TimestampRejection('badRequest', `version ${version} is not served`);
  const imprint = members.take(TAG.sequence);
  checkImprint(imprint);
  const policy = members.takeIf(TAG.oid);
  if (policy !== undefined && objectIdentifier(policy, 'reqPolicy') !== policyOid) {
    throw new TimestampRejection('unacceptedPolicy', `the only policy is ${policyOid}`);
  }
  const nonce = members.takeIf(TAG.integer);
  if (nonce !== undefined && unsignedInteger(nonce, 'nonce').length > MAX_NONCE_BYTES) {
    throw new TimestampRejection('badDataFormat', `a nonce has at most ${MAX_NONCE_BYTES} bytes`);
  }
  const certReq = members.takeIf(TAG.boolean);
  if (members.takeIf(contextTag(0, true)) !== undefined) {
    throw new TimestampRejection('unacceptedExtension', 'no extension is known');
  }
  members.end();
  const wantsCertificate = certReq !== undefined && booleanValue(certReq, 'certReq');
  return { imprint: imprint.raw, nonce: nonce?.raw, wantsCertificate };
}

function checkImprint(node: DerNode): void {
  const imprint = membersOf(node, 'messageImprint');
  const algorithm = membersOf(imprint.take(TAG.sequence), 'hashAlgorithm');
  const length = DIGEST_BYTES.get(objectIdentifier(algorithm.takeAny(), 'hashAlgorithm'));
  if (length === undefined) throw new TimestampRejection('badAlg', 'SHA-256, SHA-384 and SHA-512 are served');
  const parameters = algorithm.takeIf(0x05);
  algorithm.end();
  const digest = imprint.take(TAG.octetString).content;
  imprint.end();
  if (digest.length !== length || (parameters?.content.length ?? 0) > 0) {
    throw new TimestampRejection('badDataFormat', `a digest of that algorithm has ${length} bytes`);
  }
}
