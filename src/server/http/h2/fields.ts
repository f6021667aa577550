/** A header field, read and judged once, however often a table brings it again. */
export type Field = {
  readonly name: string;
  readonly value: string;
  /** As the dynamic table counts it (RFC 7541, section 4.1). */
  readonly size: number;
  readonly kind: FieldKind;
};

/** What a field is in a request: a pseudo-header field, one that makes the request malformed, or any other. */
type FieldKind = 'pseudo' | 'malformed' | 'regular';

/** What a field counts beside its octets (RFC 7541, section 4.1; RFC 9113, section 6.5.2). */
const FIELD_OVERHEAD = 32;
const PSEUDO: ReadonlySet<string> = new Set([':method', ':scheme', ':authority', ':path']);
/** Fields that are about a connection (RFC 9113, section 8.2.2). */
const CONNECTION_SPECIFIC: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);
/** A token (RFC 9110, section 5.6.2) in lower case. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** A value (RFC 9113, section 8.2.1) without control characters. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** What a pseudo-header field holds: no spaces. */
const TARGET = /^[\x21-\x7e\x80-\xff]*$/;
/** What a value that is sent must not hold, as Node has it. */
const BAD_SENT_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** Makes a field of a request. Space around a value is dropped, as HTTP/1.1 does and nghttp2 did: clients send it. */
export function makeField(name: string, sent: string): Field {
  const size = name.length + sent.length + FIELD_OVERHEAD;
  const value = name.startsWith(':') ? sent : withoutSpaceAround(sent);
  return { name, value, size, kind: kindOf(name, value) };
}

function withoutSpaceAround(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isSpace(value.charCodeAt(start))) start++;
  while (start < end && isSpace(value.charCodeAt(end - 1))) end--;
  return end - start === value.length ? value : value.slice(start, end);
}

/** A space or a tab. */
function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function kindOf(name: string, value: string): FieldKind {
  if (!VALUE.test(value)) return 'malformed';
  if (name.startsWith(':')) return PSEUDO.has(name) && TARGET.test(value) ? 'pseudo' : 'malformed';
  if (!NAME.test(name) || CONNECTION_SPECIFIC.has(name)) return 'malformed';
  return name === 'te' && value !== 'trailers' ? 'malformed' : 'regular';
}

/** Whether a field of a response is about the connection, so that HTTP/2 does not carry it. */
export function isConnectionSpecific(name: string): boolean {
  return CONNECTION_SPECIFIC.has(name);
}

/** Throws for a value that would break the fields it is sent among. */
export function assertSendable(name: string, value: string): void {
  if (BAD_SENT_VALUE.test(value))
    throw new TypeError(`the header ${name} has a character that is not allowed`);
}
