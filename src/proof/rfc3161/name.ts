/** Distinguished names as people read them. */
import type { DerNode } from '../asn1/der.js';
import { membersOf, objectIdentifier } from '../asn1/der-read.js';

const KEYWORDS: ReadonlyMap<string, string> = new Map([
  ['2.5.4.3', 'CN'],
  ['2.5.4.5', 'SERIALNUMBER'],
  ['2.5.4.6', 'C'],
  ['2.5.4.7', 'L'],
  ['2.5.4.8', 'ST'],
  ['2.5.4.9', 'STREET'],
  ['2.5.4.10', 'O'],
  ['2.5.4.11', 'OU'],
  ['2.5.4.97', 'organizationIdentifier'],
  ['0.9.2342.19200300.100.1.25', 'DC'],
  ['1.2.840.113549.1.9.1', 'emailAddress'],
]);

const DECODERS: ReadonlyMap<number, string> = new Map([
  [0x0c, 'utf-8'],
  [0x14, 'latin1'],
  [0x1e, 'utf-16be'],
]);

/**
 * A Name in the string form of RFC 4514, most specific first, as in `CN=Time,O=Example,C=DE`. Control characters are
 * shown as escapes, so the text is one line whatever the certificate says. Throws FormatError.
 */
export function nameText(name: DerNode): string {
  const relative = name.children.map((set) => set.children.map(attributeText).join('+'));
  return relative.reverse().join(',');
}

function attributeText(node: DerNode): string {
  const members = membersOf(node, 'AttributeTypeAndValue');
  const oid = objectIdentifier(members.takeAny(), 'attribute type');
  const value = members.takeAny();
  const text = new TextDecoder(DECODERS.get(value.tag) ?? 'utf-8').decode(value.content);
  return `${KEYWORDS.get(oid) ?? oid}=${escapeValue(text)}`;
}

function escapeValue(text: string): string {
  const special = text.replace(/["+,;<>\\]/g, '\\$&').replace(/^[ #]| $/g, '\\$&');
  return special.replace(/\p{Cc}/gu, (control) => `\\${control.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
