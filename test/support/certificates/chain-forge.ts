/** Certificate chains that differ from a valid one in one chosen way, and our verdict on a chain. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { parseDer } from '../../../src/proof/asn1/der.js';
import { derBitString, derInteger, derSequence, derTrue } from '../../../src/proof/asn1/der-write.js';
import { checkChain } from '../../../src/proof/rfc3161/chain.js';
import { TimestampError, type TimestampErrorCode } from '../../../src/proof/rfc3161/error.js';
import {
  type CertificateContent,
  derName,
  ECDSA_WITH_SHA256,
  issueCertificate,
  randomSerial,
  signerExtensions,
} from '../../../src/server/timestamp-authority/certificate-authority.js';
import { caExtensions, VALIDITY } from './timestamp-forge.js';

/** A certificate with its subject's name (DER) and keys. */
export type Issued = { der: Uint8Array; name: Uint8Array; publicKey: KeyObject; privateKey: KeyObject };

/** What differs from a valid certificate. `pathLength` is that of its basic constraints, none by default. */
export type Changes = Partial<CertificateContent> & { pathLength?: number };

/** The code of the error that `checkChain` throws, or that it throws none. */
export async function chainVerdict(
  chain: readonly Uint8Array[],
  at: Date,
): Promise<TimestampErrorCode | 'accepted'> {
  try {
    await checkChain(chain, at);
    return 'accepted';
  } catch (error) {
    if (error instanceof TimestampError) return error.code;
    throw error;
  }
}

/** An authority under `issuer`, self-signed without one. `subject` is its common name. */
export function issueAuthority(
  subject: string,
  issuer?: Issued,
  { pathLength, ...changes }: Changes = {},
): Issued {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = changes.subject ?? derName(subject);
  const der = issueCertificate(issuer?.privateKey ?? keys.privateKey, {
    ...VALIDITY,
    serial: randomSerial(randomBytes),
    issuer: issuer?.name ?? name,
    subject: name,
    publicKey: keys.publicKey,
    extensions: authorityExtensions(keys.publicKey, issuer, pathLength),
    ...changes,
  });
  return { ...keys, der, name };
}

function authorityExtensions(key: KeyObject, issuer: Issued | undefined, pathLength: number | undefined) {
  const limit = pathLength === undefined ? [] : [derInteger(pathLength)];
  const constraints = { oid: '2.5.29.19', critical: true, value: derSequence(derTrue(), ...limit) };
  const [, usage, keyId] = caExtensions(key);
  const authorityKeyId = issuer && signerExtensions(key, issuer.publicKey).at(-1);
  return [constraints, usage, keyId, authorityKeyId].filter((extension) => extension !== undefined);
}

/** A certificate for time-stamping under `issuer`. */
export function issueLeaf(issuer: Issued, changes: Changes = {}): Uint8Array {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const extensions = signerExtensions(publicKey, issuer.publicKey);
  return issueAuthority('Stamps', issuer, { publicKey, extensions, ...changes }).der;
}

/** Root, intermediate and leaf, each with its changes; leaf first. */
export function issueChain(changes: {
  root?: Changes;
  intermediate?: Changes;
  leaf?: Changes;
}): Uint8Array[] {
  const root = issueAuthority('Root', undefined, changes.root);
  const intermediate = issueAuthority('Intermediate', root, changes.intermediate);
  return [issueLeaf(intermediate, changes.leaf), intermediate.der, root.der];
}

/** The members of a certificate in DER. */
export type CertificateParts = { tbs: Uint8Array; algorithm: Uint8Array; signature: Uint8Array };

/** The certificate with some of its members replaced. */
export function withParts(
  der: Uint8Array,
  change: (parts: CertificateParts) => Partial<CertificateParts>,
): Uint8Array {
  const [tbs, algorithm, signature] = parseDer(der, der.length).children.map(({ raw }) => raw);
  if (!tbs || !algorithm || !signature) throw new Error('a certificate has three members');
  const parts = { tbs, algorithm, signature };
  const changed = { ...parts, ...change(parts) };
  return derSequence(changed.tbs, changed.algorithm, changed.signature);
}

/** The certificate with members of its TBSCertificate (DER) changed, and signed anew with SHA-256. */
export function reissue(
  der: Uint8Array,
  issuer: Issued,
  change: (members: Uint8Array[]) => Uint8Array[],
): Uint8Array {
  return withParts(der, ({ tbs }) => {
    const members = parseDer(tbs, tbs.length).children.map(({ raw }) => Uint8Array.from(raw));
    const changed = derSequence(...change(members));
    const signature = derBitString(sign('sha256', changed, issuer.privateKey));
    return { tbs: changed, algorithm: ECDSA_WITH_SHA256, signature };
  });
}
