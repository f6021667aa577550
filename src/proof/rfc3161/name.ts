/** Distinguished names: as text for people, and compared. */
import type { DerNode } from '../asn1/der.js';
import { membersOf, objectIdentifier } from '../asn1/der-read.js';
import { toHex } from '../bytes/encoding.js';
import { equalBytes } from '../bytes/primitives.js';

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

/** String types whose values are shown and compared as text, and their encodings. */
const DECODERS: ReadonlyMap<number, string> = new Map([
  [0x0c, 'utf-8'], // UTF8String
  [0x12, 'utf-8'], // NumericString
  [0x13, 'utf-8'], // PrintableString
  [0x14, 'latin1'], // TeletexString
  [0x16, 'utf-8'], // IA5String
  [0x1a, 'utf-8'], // VisibleString
  [0x1e, 'utf-16be'], // BMPString
]);

/**
 * A Name in the string form of RFC 4514, most specific first, as in `CN=Time,O=Example,C=DE`. Control characters are
 * shown as escapes, so the text is always one line. Throws FormatError.
 */
export function nameText(name: DerNode): string {
  const relative = name.children.map((set) => set.children.map(attributeText).join('+'));
  return relative.reverse().join(',');
}

/**
 * Whether two Names are the same (RFC 5280, section 7.1): strings of any type are compared without regard to case,
 * composition of characters and surplus white space, all else byte by byte. Throws FormatError.
 */
export function sameName(a: DerNode, b: DerNode): boolean {
  return equalBytes(a.raw, b.raw) || comparableName(a) === comparableName(b);
}

function comparableName(name: DerNode): string {
  const relative = name.children.map((set) => set.children.map(comparableAttribute).sort());
  return JSON.stringify(relative);
}

function comparableAttribute(node: DerNode): string {
  const members = membersOf(node, 'AttributeTypeAndValue');
  const oid = objectIdentifier(members.takeAny(), 'attribute type');
  const value = members.takeAny();
  members.end();
  const text = findText(value);
  if (text === undefined) return `${oid}#${toHex(value.raw)}`;
  return `${oid}=${text.normalize('NFKC').toLowerCase().trim().replace(/\s+/g, ' ')}`;
}

/** The text of a string; undefined if it is of another type or is not encoded as its type says. */
function findText(value: DerNode): string | undefined {
  const encoding = DECODERS.get(value.tag);
  if (encoding === undefined) return undefined;
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(value.content);
  } catch {
    return undefined;
  }
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
