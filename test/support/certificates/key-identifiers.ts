/** Certificate chains whose leaf names its issuer by an AuthorityKeyIdentifier (RFC 5280, section 4.2.1.1). */
import { parseDer } from '../../../src/proof/asn1/der.js';
import { derElement, derSequence } from '../../../src/proof/asn1/der-write.js';
import { type Issued, issueAuthority, issueLeaf } from './chain-forge.js';
import { caExtensions, leafExtensions } from './timestamp-forge.js';
import { invalid, type WrongChain } from './wrong-chains.js';

const root = issueAuthority('Root');
const intermediate = issueAuthority('Intermediate', root);
const unidentified = issueAuthority('Intermediate', root, {
  extensions: caExtensions(root.publicKey).slice(0, 2),
});

const keyIdentifier = (bytes: Uint8Array) => derElement(0x80, bytes);
const serialNumber = (octets: Uint8Array) => derElement(0x82, octets);
const directoryName = (name: Uint8Array) => derElement(0xa4, name);
const issuerNames = (...names: Uint8Array[]) => derElement(0xa1, ...names);
const dnsName = derElement(0x82, Buffer.from('tsa.example.com'));

const serialOf = ({ der }: Issued) => parseDer(der, der.length).children[0]!.children[1]!.content;
const elsewhere = new Uint8Array(20).fill(7);

function chainWith(value: Uint8Array, issuer = intermediate): Uint8Array[] {
  const extensions = [...leafExtensions(''), { oid: '2.5.29.35', critical: false, value }];
  return [issueLeaf(issuer, { extensions }), issuer.der, root.der];
}

/** Chains whose AuthorityKeyIdentifier names the issuer, or nothing that could be compared. */
export function identifiedChains(): Record<string, Uint8Array[]> {
  return {
    'with an empty authority key identifier': chainWith(derSequence()),
    'identified by serial number and name': chainWith(
      derSequence(issuerNames(dnsName, directoryName(root.name)), serialNumber(serialOf(intermediate))),
    ),
    'identified by a key identifier that the issuer lacks': chainWith(
      derSequence(keyIdentifier(elsewhere)),
      unidentified,
    ),
    'identified by a name that is no directory name': chainWith(derSequence(issuerNames(dnsName))),
  };
}

/** Chains whose AuthorityKeyIdentifier names another issuer, or is malformed. */
export function misidentifiedChains(): WrongChain[] {
  const values: [name: string, value: Uint8Array][] = [
    ['another serial number', derSequence(serialNumber(serialOf(root)))],
    ['another name of the issuer', derSequence(issuerNames(directoryName(intermediate.name)))],
    ['an authority key identifier that is no sequence', keyIdentifier(elsewhere)],
    ['an unknown member in the authority key identifier', derSequence(derElement(0x83, elsewhere))],
    ['a serial number that is not minimal', derSequence(serialNumber(Uint8Array.of(0, 1)))],
  ];
  return [
    invalid('another key identifier', chainWith(derSequence(keyIdentifier(elsewhere)))),
    ...values.map(([name, value]) => invalid(name, chainWith(value), 'sigstore')),
  ];
}
