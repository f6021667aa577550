/** Our trust roots in Sigstore's TrustedRoot form, for Sigstore's tools. */

import { toBase64 } from '../bytes/encoding.js';
import { ed25519Spki } from '../bytes/primitives.js';
import { noteKeyHash } from '../log/note.js';

const TRUSTED_ROOT_MEDIA_TYPE = 'application/vnd.dev.sigstore.trustedroot+json;version=0.1';

/** A log: its origin and raw Ed25519 key. Without `validFrom` the key is trusted at any earlier time. */
export type TrustedLog = {
  readonly origin: string;
  readonly publicKey: Uint8Array;
  readonly validFrom?: Date;
  readonly validTo?: Date;
};

/** A time-stamping authority: DER certificates, its own first. */
type TrustedAuthority = {
  readonly operator: string;
  readonly name: string;
  readonly uri: string;
  readonly certChain: readonly Uint8Array[];
  readonly validFrom: Date;
  readonly validTo?: Date;
};

/** A span of time, RFC 3339. */
type TimeRange = { start: string; end?: string };

/** The TrustedRoot's JSON (ProtoJSON). */
export type TrustedRoot = {
  mediaType: string;
  tlogs: {
    baseUrl: string;
    hashAlgorithm: 'SHA2_256';
    publicKey: { rawBytes: string; keyDetails: 'PKIX_ED25519'; validFor: TimeRange };
    logId: { keyId: string };
  }[];
  certificateAuthorities: never[];
  ctlogs: never[];
  timestampAuthorities: {
    subject: { organization: string; commonName: string };
    uri: string;
    certChain: { certificates: { rawBytes: string }[] };
    validFor: TimeRange;
  }[];
};

/** The TrustedRoot of one environment; retired keys stay in it with their end of validity. */
export function trustedRoot(
  logs: readonly TrustedLog[],
  timestampAuthorities: readonly TrustedAuthority[],
): TrustedRoot {
  return {
    mediaType: TRUSTED_ROOT_MEDIA_TYPE,
    tlogs: logs.map(({ origin, publicKey, validFrom, validTo }) => ({
      baseUrl: `https://${origin}`,
      hashAlgorithm: 'SHA2_256',
      publicKey: {
        rawBytes: toBase64(ed25519Spki(publicKey)),
        keyDetails: 'PKIX_ED25519',
        validFor: timeRange(validFrom ?? new Date(0), validTo),
      },
      logId: { keyId: toBase64(noteKeyHash(origin, publicKey)) },
    })),
    certificateAuthorities: [],
    ctlogs: [],
    timestampAuthorities: timestampAuthorities.map(
      ({ operator, name, uri, certChain, validFrom, validTo }) => ({
        subject: { organization: operator, commonName: name },
        uri,
        certChain: { certificates: certChain.map((der) => ({ rawBytes: toBase64(der) })) },
        validFor: timeRange(validFrom, validTo),
      }),
    ),
  };
}

function timeRange(start: Date, end: Date | undefined): TimeRange {
  return { start: start.toISOString(), ...(end && { end: end.toISOString() }) };
}
