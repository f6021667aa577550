/** Certificate chains with one fault each, and whether openssl and Sigstore see it. */
import { generateKeyPairSync, sign } from 'node:crypto';
import {
  derBitString,
  derObjectIdentifier,
  derOctetString,
  derSequence,
} from '../../../src/proof/asn1/der-write.js';
import { concatBytes } from '../../../src/proof/bytes/encoding.js';
import type { TimestampErrorCode } from '../../../src/proof/rfc3161/error.js';
import { type Changes, issueAuthority, issueChain, issueLeaf, reissue, withParts } from './chain-forge.js';
import { GEN_TIME } from './timestamp-forge.js';
import { withByte } from './wrong-timestamps.js';

/** A chain (DER, leaf first), and who accepts it: without the check, or on another path through the same certificates. */
export type WrongChain = {
  name: string;
  chain: Uint8Array[];
  code: TimestampErrorCode;
  acceptedBy: readonly ('openssl' | 'sigstore')[];
};

const root = issueAuthority('Root');
const intermediate = issueAuthority('Intermediate', root);
const leaf = issueLeaf(intermediate);

/** Chains that are out of order, or of whose names two do not fit. */
export function misnamedChains(): WrongChain[] {
  const other = issueAuthority('Other', root);
  const renamed = issueAuthority('Intermediate', root, { issuer: other.name });
  const nameless = issueLeaf(intermediate, { issuer: derSequence() });
  return [
    wrong('chain_order', 'an issuer of another name', [leaf, other.der, root.der]),
    wrong('chain_order', 'a certificate that names another issuer', [leaf, renamed.der, root.der]),
    wrong('chain_order', 'a certificate that names no issuer', [nameless, intermediate.der, root.der]),
  ];
}

/** Chains of which one certificate has expired, or is not valid yet. */
export function expiredChains(): WrongChain[] {
  const expired = { notAfter: new Date(GEN_TIME.getTime() - 1000) };
  const early = { notBefore: new Date(GEN_TIME.getTime() + 1000) };
  return Object.entries({ expired, early }).flatMap(([name, changes]) => [
    wrong('chain_expired', `${name} leaf`, issueChain({ leaf: changes })),
    wrong('chain_expired', `${name} intermediate`, issueChain({ intermediate: changes })),
    wrong('chain_expired', `${name} root`, issueChain({ root: changes })),
  ]);
}

/** Chains of which a signature is not that of the next certificate's key. */
export function missignedChains(): WrongChain[] {
  const namesake = issueAuthority('Root');
  const underRoot = issueLeaf(root);
  const flipped = (der: Uint8Array, index: number) => withByte(der, index, (der.at(index) ?? 0) ^ 1);
  const unusedBits = withParts(leaf, ({ signature }) => ({ signature: withByte(signature, 2, 1) }));
  const sha384 = derSequence(derObjectIdentifier('1.2.840.10045.4.3.3'));
  const rsa = derSequence(derObjectIdentifier('1.2.840.113549.1.1.11'));
  const outside = withParts(leaf, ({ tbs }) => {
    return { algorithm: sha384, signature: derBitString(sign('sha384', tbs, intermediate.privateKey)) };
  });
  const inside = withInnerAlgorithm(sha384);
  const ofRsa = withParts(withInnerAlgorithm(rsa), () => ({ algorithm: rsa }));
  const under = (der: Uint8Array) => [der, intermediate.der, root.der];
  return [
    invalid('a changed signature', under(flipped(leaf, -1))),
    invalid('a changed serial number', under(flipped(leaf, 16))),
    invalid('a changed intermediate', [leaf, flipped(intermediate.der, -1), root.der]),
    invalid('a signature of a broken number of octets', under(unusedBits), 'sigstore'),
    invalid('another algorithm outside than inside', under(outside), 'sigstore'),
    invalid('another algorithm inside than outside', under(inside), 'sigstore'),
    invalid('an algorithm of another kind of key', under(ofRsa), 'sigstore'),
    invalid('an issuer with an Ed25519 key', issueChain({ intermediate: { publicKey: ed25519() } })),
    invalid('an issuer of the same name with another key', [leaf, intermediate.der, namesake.der]),
    invalid(
      'an issuer of the same name with another key before the true one',
      [underRoot, namesake.der, root.der],
      'openssl',
      'sigstore',
    ),
  ];
}

/** Chains that are truncated, too large, too long or go round in a circle. */
export function misshapenChains(): WrongChain[] {
  const { der } = intermediate;
  const value = derOctetString(new Uint8Array(65_536));
  const extensions = [{ oid: '1.3.6.1.4.1.32473.9', critical: false, value }];
  const large = issueAuthority('Root', undefined, { extensions }).der;
  const cross = issueAuthority('Root', intermediate, { publicKey: root.publicKey }).der;
  const version1 = reissue(leaf, intermediate, ([, ...members]) => members);
  const followed = concatBytes(der, Uint8Array.of(0));
  return [
    invalid('a truncated intermediate', [leaf, der.subarray(0, -1), root.der]),
    invalid('an empty intermediate', [leaf, new Uint8Array(), root.der]),
    invalid('a byte after an intermediate', [leaf, followed, root.der], 'openssl'),
    invalid('a root of more than 64 KiB', [leaf, der, large]),
    invalid('extensions in version 1', [version1, der, root.der], 'openssl'),
    invalid('the root twice', [leaf, der, root.der, root.der], 'openssl', 'sigstore'),
    invalid('a loop', [leaf, der, cross, der, root.der], 'openssl', 'sigstore'),
    invalid('eleven certificates', longChain(), 'openssl', 'sigstore'),
    invalid('the leaf alone', [leaf]),
    invalid('no certificate', []),
  ];
}

/** Short for a chain that is refused as `chain_invalid`. */
export function invalid(
  name: string,
  chain: Uint8Array[],
  ...acceptedBy: WrongChain['acceptedBy']
): WrongChain {
  return wrong('chain_invalid', name, chain, acceptedBy);
}

function wrong(
  code: TimestampErrorCode,
  name: string,
  chain: Uint8Array[],
  acceptedBy: WrongChain['acceptedBy'] = [],
): WrongChain {
  return { name, chain, code, acceptedBy };
}

function withInnerAlgorithm(algorithm: Uint8Array): Uint8Array {
  return reissue(leaf, intermediate, (members) => members.with(2, algorithm));
}

function ed25519(): NonNullable<Changes['publicKey']> {
  return generateKeyPairSync('ed25519').publicKey;
}

function longChain(): Uint8Array[] {
  let issuer = root;
  const chain = [root.der];
  for (let length = 1; length < 10; length += 1) {
    issuer = issueAuthority('Root', issuer);
    chain.unshift(issuer.der);
  }
  return [issueLeaf(issuer), ...chain];
}
