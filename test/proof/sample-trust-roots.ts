import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { type TrustRoots, TrustRootsSchema } from '../../gen/attestation/v1/service_pb.js';
import { toPem } from '../../src/proof/asn1/pem.js';
import { toHex } from '../../src/proof/bytes/encoding.js';
import { ed25519Spki, sha256 } from '../../src/proof/bytes/primitives.js';
import {
  COSIGNATURE_V1_KEY,
  encodeVerifierKey,
  ML_DSA_44_NOTE_KEY,
  noteKey,
} from '../../src/proof/log/note.js';
import type { Service } from './sample.js';

/** The service's trust roots; the authority is required. */
export function makeTrustRoots(
  service: Service,
  change: MessageInitShape<typeof TrustRootsSchema> = {},
): TrustRoots {
  const environment = service.environment === 'live' ? Environment.LIVE : Environment.TEST;
  const { name, mlDsa } = service.cosigner;
  const validFrom = timestampFromDate(new Date('2025-01-01T00:00:00Z'));
  return create(TrustRootsSchema, {
    timestampAuthorities: [
      { name: 'tsa', operator: 'self', certChainPem: service.authority.certChainPem, validFrom },
    ],
    transparencyLogs: [
      {
        environment,
        origin: service.origin,
        verifierKey: encodeVerifierKey(noteKey(service.origin, service.log.publicKey)),
        mlDsaVerifierKey: service.log.mlDsa
          ? encodeVerifierKey(noteKey(service.origin, service.log.mlDsa.publicKey, ML_DSA_44_NOTE_KEY))
          : '',
        publicKeyPem: toPem('PUBLIC KEY', ed25519Spki(service.log.publicKey)),
        url: `https://${service.origin}`,
      },
    ],
    logWitnesses: [
      {
        name: 'w1',
        verifierKey: encodeVerifierKey(
          noteKey(service.cosigner.name, service.cosigner.publicKey, COSIGNATURE_V1_KEY),
        ),
      },
      ...(mlDsa
        ? [
            {
              name: 'w1',
              verifierKey: encodeVerifierKey(noteKey(name, mlDsa.publicKey, ML_DSA_44_NOTE_KEY)),
            },
          ]
        : []),
    ],
    opentimestampsWitnesses: [{ name: 'calendar', calendars: ['https://calendar.example'], validFrom }],
    dsseSigningKeys: [
      {
        environment,
        fingerprintSha256: toHex(sha256(service.dsse.publicKey)),
        algorithm: 'ecdsa-p256-sha256',
        publicKeyPem: toPem('PUBLIC KEY', service.dsse.publicKey),
        validFrom,
      },
    ],
    policies: [{ environment, version: 1, required: ['tsa'], deadline: { seconds: 3600n } }],
    ...change,
  });
}
