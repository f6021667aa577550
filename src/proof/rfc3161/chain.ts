/** Validation of a trusted certificate chain at the time of a stamp (RFC 5280, section 6.1). */
import { TAG } from '../asn1/der.js';
import { booleanValue, hasNamedBit, membersOf, unsignedInteger, x509Time } from '../asn1/der-read.js';
import { FormatError } from '../bytes/format-error.js';
import { equalBytes } from '../bytes/primitives.js';
import { type Certificate, extensionValue, parseCertificate } from './certificate.js';
import { isSignedBy } from './certificate-signature.js';
import { TimestampError } from './error.js';
import { matchesIssuer } from './key-identifiers.js';
import { sameName } from './name.js';

const KEY_USAGE_OID = '2.5.29.15';
const BASIC_CONSTRAINTS_OID = '2.5.29.19';
const KEY_CERT_SIGN = 5;
const MAX_CHAIN = 10;
const VERSION_3 = 2;

/** Extensions that may be critical because this file or `checkUsage` processes them (RFC 5280, section 4.2). */
const PROCESSED_EXTENSIONS: ReadonlySet<string> = new Set([
  BASIC_CONSTRAINTS_OID,
  KEY_USAGE_OID,
  '2.5.29.17', // subjectAltName: further names of the subject, none of which is compared
  '2.5.29.32', // certificatePolicies: any policy will do, and nothing processed here can demand one
  '2.5.29.37', // extKeyUsage: checked in the leaf; RFC 5280 gives it no meaning in an issuer
]);

/**
 * Extensions that are not processed and reject a chain even if they are not critical: ignoring them would trust an issuer
 * with names that its own issuer withheld, or with policies that it equated.
 */
const UNSUPPORTED_EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ['2.5.29.30', 'name constraints'],
  ['2.5.29.33', 'policy mappings'],
]);

/**
 * Checks that `chain` was valid at `at`: 2 to 10 certificates (DER, 64 KiB each), leaf first, each issued by the next,
 * the trust anchor last. Checks signatures, names, authority key identifiers, validity, basic constraints, path lengths,
 * key usage and critical extensions; the anchor's own signature is not verified.
 *
 * Name constraints and policy mappings are not processed: a chain with any is rejected. Policy constraints and
 * inhibitAnyPolicy are not processed either and rejected if critical; otherwise they do not matter, because no policy is
 * required. Revocation is not checked.
 *
 * Throws TimestampError `chain_order`, `chain_expired` or `chain_invalid`.
 */
export async function checkChain(chain: readonly Uint8Array[], at: Date): Promise<void> {
  if (chain.length < 2 || chain.length > MAX_CHAIN) {
    throw invalid(`a chain of ${chain.length} certificates, 2 to ${MAX_CHAIN} are read`);
  }
  try {
    const certificates = chain.map(parseCertificate);
    checkOrder(certificates);
    checkValidity(certificates, at);
    checkExtensions(certificates);
    checkAuthorities(certificates);
    await checkSignatures(certificates);
  } catch (error) {
    const isChainError = error instanceof TimestampError && error.code !== 'algorithm_unsupported';
    if (isChainError || !(error instanceof FormatError || error instanceof TimestampError)) throw error;
    throw invalid(`the chain does not verify: ${error.message}`, { cause: error });
  }
}

function checkOrder(certificates: readonly Certificate[]): void {
  forEachIssuer(certificates, (issuer, certificate, index) => {
    if (sameName(certificate.issuer, issuer.subject)) return;
    throw new TimestampError(
      'chain_order',
      `certificate ${index} of the chain is not issued by the next one`,
    );
  });
  const repeated = certificates.findIndex((one, index) =>
    certificates.slice(0, index).some(({ raw }) => equalBytes(raw, one.raw)),
  );
  if (repeated !== -1) throw invalid(`certificate ${repeated} of the chain occurs twice`);
}

function checkValidity(certificates: readonly Certificate[], at: Date): void {
  certificates.forEach(({ validity }, index) => {
    const members = membersOf(validity, 'validity');
    const notBefore = x509Time(members.takeAny(), 'notBefore');
    const notAfter = x509Time(members.takeAny(), 'notAfter');
    members.end();
    if (notBefore <= at && at <= notAfter) return;
    throw new TimestampError(
      'chain_expired',
      `certificate ${index} of the chain was not valid at ${at.toISOString()}`,
    );
  });
}

function checkExtensions(certificates: readonly Certificate[]): void {
  certificates.forEach(({ extensions, version }, index) => {
    const unknown = extensions.find(({ critical, oid }) => critical && !PROCESSED_EXTENSIONS.has(oid));
    if (unknown !== undefined)
      throw invalid(`a certificate has the unknown critical extension ${unknown.oid}`);
    const unsupported = extensions.find(({ oid }) => UNSUPPORTED_EXTENSIONS.has(oid));
    if (unsupported !== undefined) {
      const name = UNSUPPORTED_EXTENSIONS.get(unsupported.oid);
      throw invalid(`certificate ${index} of the chain has ${name}, which are not supported`);
    }
    if (extensions.length > 0 && version !== VERSION_3) {
      throw invalid(`certificate ${index} of the chain has extensions, but not version 3`);
    }
  });
}

/** Basic constraints, path lengths and key usage of the issuers (RFC 5280, section 6.1.4, from (k)); key identifiers. */
function checkAuthorities(certificates: readonly Certificate[]): void {
  let below = 0;
  forEachIssuer(certificates, (issuer, certificate, index) => {
    const refuse = (why: string) => invalid(`certificate ${index + 1} of the chain ${why}`);
    const limit = pathLength(issuer);
    if (limit === undefined) throw refuse('is not a certificate authority');
    if (below > limit) throw refuse(`may not have ${below} authorities below it`);
    if (!maySignCertificates(issuer)) throw refuse('may not sign certificates');
    if (!matchesIssuer(certificate, issuer))
      throw refuse(`does not match the authority key identifier of certificate ${index}`);
    if (!sameName(issuer.issuer, issuer.subject)) below += 1;
  });
}

async function checkSignatures(certificates: readonly Certificate[]): Promise<void> {
  const verified = certificates
    .slice(1)
    .map((issuer, index) => isSignedBy(certificates[index] ?? issuer, issuer));
  const wrong = (await Promise.all(verified)).indexOf(false);
  if (wrong !== -1) throw invalid(`certificate ${wrong} of the chain is not signed by the next one's key`);
}

/** How many authorities may be below this one; undefined if it is no authority. */
function pathLength(certificate: Certificate): number | undefined {
  const value = extensionValue(certificate, BASIC_CONSTRAINTS_OID);
  if (value === undefined) return undefined;
  const members = membersOf(value, 'basicConstraints');
  const flag = members.takeIf(TAG.boolean);
  const limit = members.takeIf(TAG.integer);
  members.end();
  if (flag === undefined || !booleanValue(flag, 'cA')) return undefined;
  if (limit === undefined) return Number.POSITIVE_INFINITY;
  const octets = unsignedInteger(limit, 'pathLenConstraint');
  return octets.reduce((length, octet) => length * 256 + octet, 0);
}

function maySignCertificates(certificate: Certificate): boolean {
  const usage = extensionValue(certificate, KEY_USAGE_OID);
  return usage === undefined || hasNamedBit(usage, KEY_CERT_SIGN, 'keyUsage');
}

/** Calls `check` with each certificate that must have issued one, that one, and its index. */
function forEachIssuer(
  certificates: readonly Certificate[],
  check: (issuer: Certificate, certificate: Certificate, index: number) => void,
): void {
  certificates.slice(1).forEach((issuer, index) => {
    check(issuer, certificates[index] ?? issuer, index);
  });
}

function invalid(message: string, options?: ErrorOptions): TimestampError {
  return new TimestampError('chain_invalid', message, options);
}
