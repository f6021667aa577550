/**
 * The RFC 3161 authority that `attest up` runs in its own process, so that the whole path is real with no network. Its
 * clock is the operator's own: it vouches to nobody else.
 */

import { certificatePem, loadAuthorityKeys } from './authority-file.js';
import type { CaDeps } from './certificate-authority.js';
import { randomSerial } from './certificate-authority.js';
import { parseTimestampRequest, TimestampRejection } from './request.js';
import { grantTimestamp, rejectTimestamp, type TimestampSigner } from './response.js';

/** An open authority. It holds no resource: there is nothing to close. */
export type TimestampAuthority = {
  /** Leaf first, then the root. */
  certChainPem: string[];
  /** The same certificates in DER, as `verifyTimestamp` takes a chain. */
  certChain: Uint8Array[];
  policyOid: string;
  /** TimeStampReq to TimeStampResp, DER both. What cannot be stamped is answered with a rejection. */
  respond(request: Uint8Array): Promise<Uint8Array>;
};

/**
 * The policy of embedded authorities, "no promise beyond the operator's clock", under the arc for examples (2.999). Go's
 * ASN.1 reads arcs below 2^31 only, so that a UUID as an arc would keep every program in Go from reading the stamps.
 */
export const EMBEDDED_POLICY_OID = '2.999.3161.1';

/**
 * Opens the authority whose keys are in `dir`; makes them, once, if there are none. Throws when they are damaged or the
 * folder cannot be written.
 */
export async function openTimestampAuthority(deps: CaDeps & { dir: string }): Promise<TimestampAuthority> {
  const { privateKey, chain } = await loadAuthorityKeys(deps);
  const signer = { privateKey, certificate: chain[0], policyOid: EMBEDDED_POLICY_OID };
  return {
    certChainPem: chain.map(certificatePem),
    certChain: [...chain],
    policyOid: EMBEDDED_POLICY_OID,
    respond: async (request) => respond(deps, signer, request),
  };
}

function respond(deps: CaDeps, signer: TimestampSigner, request: Uint8Array): Uint8Array {
  try {
    const query = parseTimestampRequest(request, signer.policyOid);
    return grantTimestamp(signer, query, { genTime: deps.clock(), serial: randomSerial(deps.randomBytes) });
  } catch (error) {
    if (error instanceof TimestampRejection) return rejectTimestamp(error.failure, error.message);
    throw error;
  }
}
