/** Certificate chains of which an issuer may not issue, or a certificate says what is not processed. */
import {
  derElement,
  derInteger,
  derObjectIdentifier,
  derSequence,
  derTrue,
} from '../../../src/proof/asn1/der-write.js';
import { type Changes, issueAuthority, issueChain, issueLeaf } from './chain-forge.js';
import { bits, caExtensions, leafExtensions } from './timestamp-forge.js';
import { invalid, type WrongChain } from './wrong-chains.js';

const root = issueAuthority('Root');
const intermediate = issueAuthority('Intermediate', root);

const extension = (oid: string, critical: boolean, value: Uint8Array) => ({ oid, critical, value });
const constraints = (...members: Uint8Array[]) => extension('2.5.29.19', true, derSequence(...members));
const usage = (value: Uint8Array) => extension('2.5.29.15', true, value);

/** Chains of which an issuer is no authority for the certificate before it. */
export function unauthorisedChains(): WrongChain[] {
  const leafLike = { extensions: leafExtensions('') };
  const none = { extensions: [] };
  const noSigning = caWith(usage(bits(1, 0b0000_0010)));
  const negative = caWith(constraints(derTrue(), derElement(0x02, Uint8Array.of(0xff))));
  const twice = caWith(constraints(derTrue()), constraints());
  const deep = issueAuthority('Deep', intermediate);
  const limited = { publicKey: intermediate.publicKey, pathLength: 0 };
  const shallow = issueAuthority('Intermediate', root, limited);
  return [
    invalid('an intermediate that is a leaf', issueChain({ intermediate: leafLike })),
    invalid('a root that is a leaf', issueChain({ root: leafLike })),
    invalid('an intermediate without extensions', issueChain({ intermediate: none })),
    invalid('a root without extensions', issueChain({ root: none })),
    invalid('an intermediate with cA left out', issueChain({ intermediate: caWith(constraints()) })),
    invalid('two basic constraints', issueChain({ intermediate: twice }), 'sigstore'),
    invalid('a path longer than the root allows', issueChain({ root: { pathLength: 0 } })),
    invalid('a path longer than an intermediate allows', [issueLeaf(deep), deep.der, shallow.der, root.der]),
    invalid('a negative path length', issueChain({ intermediate: negative })),
    invalid('an intermediate without keyCertSign', issueChain({ intermediate: noSigning })),
    invalid('a root without keyCertSign', issueChain({ root: noSigning })),
    invalid('an empty key usage', issueChain({ intermediate: caWith(usage(bits(0))) })),
  ];
}

/** Chains with an extension that is not processed and may not be ignored. */
export function unprocessedExtensions(): WrongChain[] {
  const unknown = extension('1.3.6.1.4.1.32473.9', true, derSequence());
  const leafWith = (added: ReturnType<typeof extension>) => ({ extensions: [...leafExtensions(''), added] });
  const policy = derObjectIdentifier('1.3.6.1.4.1.32473.1');
  const names = derSequence(derElement(0xa0, derSequence(derElement(0xa4, derSequence()))));
  const mappings = derSequence(derSequence(policy, policy));
  const requireExplicit = derSequence(derElement(0x81, Uint8Array.of(9)));
  const of = (oid: string, critical: boolean, value: Uint8Array) => caWith(extension(oid, critical, value));
  const unprocessed: [string, Parameters<typeof issueChain>[0]][] = [
    ['name constraints', { intermediate: of('2.5.29.30', true, names) }],
    ['name constraints of the root', { root: of('2.5.29.30', true, names) }],
    ['name constraints that are not critical', { intermediate: of('2.5.29.30', false, names) }],
    ['policy mappings that are not critical', { intermediate: of('2.5.29.33', false, mappings) }],
    ['policy mappings of the leaf', { leaf: leafWith(extension('2.5.29.33', false, mappings)) }],
    ['critical policy mappings', { intermediate: of('2.5.29.33', true, mappings) }],
    ['critical policy constraints', { intermediate: of('2.5.29.36', true, requireExplicit) }],
    ['critical inhibitAnyPolicy', { intermediate: of('2.5.29.54', true, derInteger(0)) }],
  ];
  return [
    invalid('an unknown critical extension of the leaf', issueChain({ leaf: leafWith(unknown) }), 'sigstore'),
    invalid(
      'an unknown critical extension of an issuer',
      issueChain({ intermediate: caWith(unknown) }),
      'sigstore',
    ),
    invalid('an unknown critical extension of the root', issueChain({ root: caWith(unknown) }), 'sigstore'),
    ...unprocessed.map(([name, changes]) => invalid(name, issueChain(changes), 'openssl', 'sigstore')),
  ];
}

/** An authority's extensions, with these in place of the usual ones of the same kind. */
function caWith(...others: NonNullable<Changes['extensions']>): Changes {
  const usual = caExtensions(root.publicKey).slice(0, 2);
  const rest = usual.filter(({ oid }) => !others.some((other) => other.oid === oid));
  return { extensions: [...rest, ...others] };
}
