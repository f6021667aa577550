import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import type { TrustRootsReader } from '../trust-roots.js';
import type { TufTarget } from './metadata.js';

/** Clients that sign ask for it. This service has nothing that they could sign with. */
const SIGNING_CONFIG = {
  mediaType: 'application/vnd.dev.sigstore.signingconfig.v0.2+json',
  caUrls: [],
  oidcUrls: [],
  rekorTlogUrls: [],
  rekorTlogConfig: { selector: 'ANY' },
  tsaUrls: [],
  tsaConfig: { selector: 'ANY' },
};

/** The files of the repository as the trust roots are now. Sigstore's clients ask for the first and the last by these names. */
export async function currentTargets(
  trustRoots: Pick<TrustRootsReader, 'readSigstore'>,
): Promise<TufTarget[]> {
  const file = (name: string, json: unknown) => ({ name, content: JSON.stringify(json) });
  return [
    file('trusted_root.json', await trustRoots.readSigstore(Environment.LIVE)),
    file('trusted_root.test.json', await trustRoots.readSigstore(Environment.TEST)),
    file('signing_config.v0.2.json', SIGNING_CONFIG),
  ];
}
