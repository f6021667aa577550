/** Verifies Sigstore bundles of the sample artifact. */
import { fromPem } from '../../../src/proof/asn1/pem.js';
import { parsePublicKey } from '../../../src/proof/asn1/public-key.js';
import { trustedRoot } from '../../../src/proof/bundle/trusted-root.js';
import { parseTrustedRoot } from '../../../src/proof/verify-sigstore/trusted-root.js';
import {
  type SigstoreVerification,
  verifySigstoreBundle,
} from '../../../src/proof/verify-sigstore/verify-sigstore.js';
import { type BundleJson, digestOf, type makeLog } from '../../support/witnesses/sigstore-log.js';
import { ARTIFACT } from '../sample.js';
import { service } from '../verifying.js';

export const artifact = Buffer.from(ARTIFACT);

export type Given = {
  bundle: unknown;
  pem: string;
  root?: object | undefined;
  about?: Buffer;
  digestOnly?: boolean;
};

export function verify({ bundle, pem, root, about = artifact, digestOnly = false }: Given) {
  return verifySigstoreBundle(JSON.stringify(bundle), {
    key: parsePublicKey(fromPem('PUBLIC KEY', pem)),
    artifact: { sha256: new Uint8Array(digestOf('sha256', about)), ...(!digestOnly && { bytes: about }) },
    trust: root && parseTrustedRoot(JSON.stringify(root)),
  });
}

export function failures({ steps }: SigstoreVerification): string[] {
  return steps.flatMap(({ checks }) =>
    checks.filter(({ status }) => status === 'failed').map(({ code }) => code),
  );
}

export const OWN_ROOT = trustedRoot([{ origin: service.origin, publicKey: service.log.publicKey }], []);

/** A bundle with this entry of a log in place of its own. */
export function withEntry(
  json: BundleJson,
  log: ReturnType<typeof makeLog>,
  spec: [string, string, object],
): BundleJson {
  const bundle = structuredClone(json);
  bundle.verificationMaterial.tlogEntries = [log.entry(...spec)];
  return bundle;
}
