/** The parts of an X.509 certificate (RFC 5280, section 4.1) that a time stamp's signer is judged by. */
import { contextTag, type DerNode, parseDer, TAG } from '../asn1/der.js';
import {
  booleanValue,
  expectTag,
  membersOf,
  objectIdentifier,
  onlyMember,
  unsignedInteger,
} from '../asn1/der-read.js';
import { FormatError } from '../bytes/format-error.js';

/** `extnValue` is the DER inside the OCTET STRING. */
export type Extension = { readonly oid: string; readonly critical: boolean; readonly extnValue: Uint8Array };

/** Names, keys and the certificate itself are DER; `serial` is the magnitude, big-endian. */
export type Certificate = {
  readonly raw: Uint8Array;
  readonly serial: Uint8Array;
  readonly issuer: Uint8Array;
  readonly subject: DerNode;
  readonly spki: DerNode;
  readonly extensions: readonly Extension[];
};

const MAX_CERTIFICATE_BYTES = 64 * 1024;

/** Reads one certificate (DER). Throws FormatError; nothing is verified. */
export function parseCertificate(der: Uint8Array): Certificate {
  const outer = membersOf(parseDer(der, MAX_CERTIFICATE_BYTES), 'Certificate');
  const tbs = membersOf(outer.take(TAG.sequence), 'TBSCertificate');
  outer.take(TAG.sequence);
  outer.take(TAG.bitString);
  outer.end();
  tbs.takeIf(contextTag(0, true));
  const serial = unsignedInteger(tbs.take(TAG.integer), 'serialNumber');
  tbs.take(TAG.sequence);
  const issuer = tbs.take(TAG.sequence).raw;
  tbs.take(TAG.sequence);
  const subject = tbs.take(TAG.sequence);
  const spki = tbs.take(TAG.sequence);
  tbs.takeIf(contextTag(1, false));
  tbs.takeIf(contextTag(2, false));
  const extensions = readExtensions(tbs.takeIf(contextTag(3, true)));
  tbs.end();
  return { raw: der, serial, issuer, subject, spki, extensions };
}

/** The certificate's extension of this kind. */
export function findExtension(certificate: Certificate, oid: string): Extension | undefined {
  return certificate.extensions.find((extension) => extension.oid === oid);
}

/** Extensions as RFC 5280 defines them; no `list` is none. */
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

function readExtensions(wrapper: DerNode | undefined): Extension[] {
  if (wrapper === undefined) return [];
  const list = onlyMember(wrapper, 'Extensions', TAG.sequence);
  return readExtensionList(expectTag(list, TAG.sequence, 'Extensions'), 'Extension');
}
