/** TSTInfo (RFC 3161, section 2.4.2): the signed content of a time stamp. */
import { contextTag, parseDer, TAG } from '../asn1/der.js';
import {
  booleanValue,
  fractionDigits,
  generalizedTime,
  integerValue,
  membersOf,
  objectIdentifier,
  smallInteger,
} from '../asn1/der-read.js';
import { FormatError } from '../bytes/format-error.js';
import { latestTime, readAccuracy } from './accuracy.js';
import { type AlgorithmOid, algorithmOid } from './algorithm.js';
import { type Extension, readExtensionList } from './certificate.js';

/**
 * Serial number and nonce may be negative, as an authority that writes random octets makes them. `latest` is the time
 * before which the stamp was made: genTime with its accuracy.
 */
export type TstInfo = {
  readonly policyOid: string;
  readonly imprint: { readonly hashOid: AlgorithmOid; readonly digest: Uint8Array };
  readonly serial: bigint;
  readonly genTime: Date;
  readonly latest: Date;
  readonly nonce: bigint | undefined;
  readonly extensions: readonly Extension[];
};

const MAX_TST_INFO_BYTES = 16 * 1024;
/** RFC 3161 requires 160 bits for serial numbers; our nonces have at most 256 bits, and one for the sign. */
const MAX_INTEGER_BYTES = 33;

/** Reads the DER of a TSTInfo of version 1. Throws FormatError. */
export function parseTstInfo(der: Uint8Array): TstInfo {
  const members = membersOf(parseDer(der, MAX_TST_INFO_BYTES), 'TSTInfo');
  if (smallInteger(members.takeAny(), 'TSTInfo version') !== 1)
    throw new FormatError('TSTInfo is not of version 1');
  const policyOid = objectIdentifier(members.takeAny(), 'policy');
  const imprint = membersOf(members.takeAny(), 'messageImprint');
  const hashOid = algorithmOid(imprint.takeAny(), 'hashAlgorithm');
  const digest = imprint.take(TAG.octetString).content;
  imprint.end();
  const serial = integerValue(members.takeAny(), 'serialNumber', MAX_INTEGER_BYTES);
  const genTimeNode = members.takeAny();
  const genTime = generalizedTime(genTimeNode, 'genTime');
  const accuracy = readAccuracy(members.takeIf(TAG.sequence));
  const latest = latestTime(genTime, fractionDigits(genTimeNode), accuracy);
  const ordering = members.takeIf(TAG.boolean);
  if (ordering !== undefined) booleanValue(ordering, 'ordering');
  const nonceNode = members.takeIf(TAG.integer);
  const nonce = nonceNode && integerValue(nonceNode, 'nonce', MAX_INTEGER_BYTES);
  members.takeIf(contextTag(0, true));
  const extensions = readExtensionList(members.takeIf(contextTag(1, true)), 'TSTInfo extension');
  members.end();
  return { policyOid, imprint: { hashOid, digest }, serial, genTime, latest, nonce, extensions };
}
