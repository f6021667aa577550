/** Forms of bundles that are known to exist, and that another version of this verifier checks. */
import { BUNDLE_MEDIA_TYPE } from '../../bundle/bundle.js';
import { SIGSTORE_BUNDLE_MEDIA_TYPE } from '../../bundle/sigstore-bundle.js';

const BUNDLE_VERSION = /^application\/vnd\.attestation-service\.bundle\.v\d{1,9}\+json$/;
const SIGSTORE_VERSION = /^application\/vnd\.dev\.sigstore\.bundle\.v\d{1,9}\.\d{1,9}\+json$/;

/** Why a bundle of such a form, given as parsed JSON, cannot be checked here; undefined for other input. */
export function findForeignForm(json: unknown): string | undefined {
  const type = memberOf(json, 'media_type') ?? memberOf(json, 'mediaType');
  if (isOther(type, BUNDLE_MEDIA_TYPE, BUNDLE_VERSION)) {
    return `a bundle of media type ${type} takes another version of this verifier`;
  }
  const sigstore = memberOf(json, 'sigstore_bundle') ?? memberOf(json, 'sigstoreBundle');
  const inside = memberOf(sigstore, 'mediaType');
  if (isOther(inside, SIGSTORE_BUNDLE_MEDIA_TYPE, SIGSTORE_VERSION)) {
    return `a Sigstore bundle of media type ${inside} takes another version of this verifier`;
  }
  const material = memberOf(sigstore, 'verificationMaterial');
  const certificate = memberOf(material, 'certificate') ?? memberOf(material, 'x509CertificateChain');
  if (certificate !== undefined && memberOf(material, 'publicKey') === undefined) {
    return 'it is signed under a certificate, which takes another version of this verifier';
  }
  const isMessage = memberOf(sigstore, 'messageSignature') !== undefined;
  if (!isMessage || memberOf(sigstore, 'dsseEnvelope') !== undefined) return undefined;
  return 'it signs something else than a statement, which takes another version of this verifier';
}

function isOther(type: unknown, known: string, pattern: RegExp): type is string {
  return typeof type === 'string' && type !== known && pattern.test(type);
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}
