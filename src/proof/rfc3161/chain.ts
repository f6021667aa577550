/** Validation of a trusted certificate chain at the time of a stamp (RFC 5280, section 6). */
import { type BasicConstraints, Certificate, CertificateChainValidationEngine, CryptoEngine } from 'pkijs';
import { TimestampError } from './error.js';

const BASIC_CONSTRAINTS_OID = '2.5.29.19';
const MAX_CHAIN = 10;

/** Extensions that may be critical because pkijs, this file or `checkUsage` acts on them (RFC 5280, section 4.2). */
const PROCESSED_EXTENSIONS: ReadonlySet<string> = new Set([
  BASIC_CONSTRAINTS_OID,
  '2.5.29.15', // keyUsage
  '2.5.29.17', // subjectAltName: names more subjects, none of which matters here
  '2.5.29.30', // nameConstraints
  '2.5.29.32', // certificatePolicies
  '2.5.29.33', // policyMappings
  '2.5.29.36', // policyConstraints
  '2.5.29.37', // extKeyUsage
  '2.5.29.54', // inhibitAnyPolicy
]);

/**
 * Checks that `chain` (DER; leaf first, each issued by the next, root last) was valid at `at`. The last certificate is
 * the trust anchor. Throws TimestampError `chain_order`, `chain_expired` or `chain_invalid`.
 */
export async function checkChain(chain: readonly Uint8Array[], at: Date): Promise<void> {
  if (chain.length < 2 || chain.length > MAX_CHAIN) {
    throw new TimestampError(
      'chain_invalid',
      `a chain of ${chain.length} certificates, 2 to ${MAX_CHAIN} are read`,
    );
  }
  const certificates = chain.map(readCertificate);
  checkOrder(certificates);
  checkValidity(certificates, at);
  checkPathLengths(certificates);
  checkCriticalExtensions(certificates);
  const engine = new CertificateChainValidationEngine({
    trustedCerts: certificates.slice(-1),
    // The engine takes the last one for the leaf.
    certs: certificates.slice(0, -1).reverse(),
    checkDate: at,
  });
  const { result, resultMessage } = await engine.verify({}, new CryptoEngine({ crypto: globalThis.crypto }));
  if (!result) throw new TimestampError('chain_invalid', `the chain does not verify: ${resultMessage}`);
}

function readCertificate(der: Uint8Array): Certificate {
  try {
    return Certificate.fromBER(Uint8Array.from(der));
  } catch (error) {
    throw new TimestampError('chain_invalid', 'a certificate of the chain cannot be read', { cause: error });
  }
}

function checkOrder(certificates: readonly Certificate[]): void {
  certificates.slice(1).forEach((issuer, index) => {
    if (certificates[index]?.issuer.isEqual(issuer.subject)) return;
    throw new TimestampError(
      'chain_order',
      `certificate ${index} of the chain is not issued by the next one`,
    );
  });
}

function checkValidity(certificates: readonly Certificate[], at: Date): void {
  certificates.forEach(({ notBefore, notAfter }, index) => {
    if (notBefore.value <= at && at <= notAfter.value) return;
    throw new TimestampError(
      'chain_expired',
      `certificate ${index} of the chain was not valid at ${at.toISOString()}`,
    );
  });
}

/** pathLenConstraint (RFC 5280, section 4.2.1.9), which pkijs 3.4 reads and does not check. */
function checkPathLengths(certificates: readonly Certificate[]): void {
  certificates.slice(1).forEach((issuer, index) => {
    const below = certificates
      .slice(1, index + 1)
      .filter(({ issuer, subject }) => !issuer.isEqual(subject)).length;
    const limit = pathLength(issuer);
    if (limit === undefined || below <= limit) return;
    throw new TimestampError(
      'chain_invalid',
      `certificate ${index + 1} of the chain may not have ${below} below it`,
    );
  });
}

/** pkijs takes any extension that it can parse for one that it understands. */
function checkCriticalExtensions(certificates: readonly Certificate[]): void {
  const extensions = certificates.flatMap((certificate) => certificate.extensions ?? []);
  const unknown = extensions.find(({ critical, extnID }) => critical && !PROCESSED_EXTENSIONS.has(extnID));
  if (unknown === undefined) return;
  throw new TimestampError(
    'chain_invalid',
    `a certificate has the unknown critical extension ${unknown.extnID}`,
  );
}

function pathLength(certificate: Certificate): number | undefined {
  const extension = certificate.extensions?.find(({ extnID }) => extnID === BASIC_CONSTRAINTS_OID);
  const constraints: BasicConstraints | undefined = extension?.parsedValue;
  if (constraints === undefined || !('pathLenConstraint' in constraints)) return undefined;
  const limit = constraints.pathLenConstraint;
  return typeof limit === 'number' ? limit : undefined;
}
