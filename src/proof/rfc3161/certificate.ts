/** X.509 certificates (RFC 5280, section 4.1): the parts that time stamps and their chains need. */
import { contextTag, type DerNode, parseDer, TAG } from '../asn1/der.js';
import {
  booleanValue,
  expectTag,
  integerOctets,
  membersOf,
  objectIdentifier,
  onlyMember,
  smallInteger,
} from '../asn1/der-read.js';
import { FormatError } from '../bytes/format-error.js';

/** `extnValue` is the DER inside the OCTET STRING. */
export type Extension = { readonly oid: string; readonly critical: boolean; readonly extnValue: Uint8Array };

/**
 * A certificate. `raw` is the whole certificate, `tbs` the signed part. `version` is as encoded: 2 is version 3.
 * `serial` has the content octets of its INTEGER. Validity, signature and the two algorithms are not yet read.
 */
export type Certificate = {
  readonly raw: Uint8Array;
  readonly tbs: Uint8Array;
  readonly version: number;
  readonly serial: Uint8Array;
  readonly innerAlgorithm: DerNode;
  readonly outerAlgorithm: DerNode;
  readonly signature: DerNode;
  readonly issuer: DerNode;
  readonly validity: DerNode;
  readonly subject: DerNode;
  readonly spki: DerNode;
  readonly extensions: readonly Extension[];
};

const MAX_CERTIFICATE_BYTES = 64 * 1024;

/** Parses one certificate (DER, at most 64 KiB). Throws FormatError. Verifies nothing. */
export function parseCertificate(der: Uint8Array): Certificate {
  const outer = membersOf(parseDer(der, MAX_CERTIFICATE_BYTES), 'Certificate');
  const tbsNode = outer.take(TAG.sequence);
  const outerAlgorithm = outer.take(TAG.sequence);
  const signature = outer.take(TAG.bitString);
  outer.end();
  const tbs = membersOf(tbsNode, 'TBSCertificate');
  const version = readVersion(tbs.takeIf(contextTag(0, true)));
  const serial = integerOctets(tbs.take(TAG.integer), 'serialNumber');
  const innerAlgorithm = tbs.take(TAG.sequence);
  const issuer = tbs.take(TAG.sequence);
  const validity = tbs.take(TAG.sequence);
  const subject = tbs.take(TAG.sequence);
  const spki = tbs.take(TAG.sequence);
  tbs.takeIf(contextTag(1, false));
  tbs.takeIf(contextTag(2, false));
  const extensions = readExtensions(tbs.takeIf(contextTag(3, true)));
  tbs.end();
  const signed = { version, serial, innerAlgorithm, issuer, validity, subject, spki, extensions };
  return { raw: der, tbs: tbsNode.raw, ...signed, outerAlgorithm, signature };
}

/** The certificate's extension of this kind. */
export function findExtension(certificate: Certificate, oid: string): Extension | undefined {
  return certificate.extensions.find((extension) => extension.oid === oid);
}

/** The DER value of the certificate's extension of this kind; undefined if it has none. */
export function extensionValue(certificate: Certificate, oid: string): DerNode | undefined {
  const extension = findExtension(certificate, oid);
  return extension && parseDer(extension.extnValue, extension.extnValue.length);
}

/** Extensions (RFC 5280, section 4.2); none if `list` is undefined. */
export function readExtensionList(list: DerNode | undefined, name: string): Extension[] {
  const extensions = (list?.children ?? []).map((node) => {
    const members = membersOf(node, name);
    const oid = objectIdentifier(members.takeAny(), name);
    const flag = members.takeIf(TAG.boolean);
    const extnValue = members.take(TAG.octetString).content;
    members.end();
    return { oid, critical: flag !== undefined && booleanValue(flag, name), extnValue };
  });
  if (new Set(extensions.map(({ oid }) => oid)).size !== extensions.length) {
    throw new FormatError(`${name} occurs twice`);
  }
  return extensions;
}

/** Version 1 is the default, and encoded as 0. */
function readVersion(wrapper: DerNode | undefined): number {
  return wrapper === undefined ? 0 : smallInteger(onlyMember(wrapper, 'version', TAG.integer), 'version');
}

function readExtensions(wrapper: DerNode | undefined): Extension[] {
  if (wrapper === undefined) return [];
  const list = onlyMember(wrapper, 'Extensions', TAG.sequence);
  return readExtensionList(expectTag(list, TAG.sequence, 'Extensions'), 'Extension');
}
