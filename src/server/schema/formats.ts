import { domainToASCII } from 'node:url';
import type { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats, { type FormatsPlugin } from 'ajv-formats';
import { findPurlProblem, isPurl } from './purl.js';

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Names of formats in messages; a format without one appears by its own name. */
const FORMAT_NAMES: Readonly<Record<string, string>> = {
  base64: 'standard base64',
  date: 'a date, as in 2024-01-31',
  'date-time': 'an RFC 3339 time stamp, as in 2024-01-31T12:00:00Z',
  email: 'an e-mail address',
  'idn-email': 'an e-mail address',
  'idn-hostname': 'a host name',
  iri: 'an absolute IRI',
  uri: 'an absolute URI',
  uuid: 'a UUID',
};

/**
 * Teaches ajv the formats that schemas may use: those of JSON Schema, `purl` (a package URL) and `base64` (RFC 4648,
 * section 4). Not `url`, which JSON Schema does not have and whose pattern takes 3 s over 64 KiB made for it.
 */
export function addSchemaFormats(ajv: Ajv2020): void {
  // NodeNext sees a CommonJS module as a whole; its function is the module itself and its member `default`.
  (addFormats as unknown as FormatsPlugin)(ajv);
  delete ajv.formats.url;
  const isDateTime = checkOf(ajv, 'date-time');
  // Its own takes a space for the T, and offsets without minutes.
  ajv.addFormat('date-time', (text: string) => RFC3339.test(text) && isDateTime(text));
  addInternationalFormats(ajv);
  ajv.addFormat('base64', BASE64);
  ajv.addFormat('purl', isPurl);
}

/** The formats that the library lacks: those of text in any script, checked by the form that has ASCII only. */
function addInternationalFormats(ajv: Ajv2020): void {
  const [isUri, isReference] = [checkOf(ajv, 'uri'), checkOf(ajv, 'uri-reference')];
  const [isHost, isEmail] = [checkOf(ajv, 'hostname'), checkOf(ajv, 'email')];
  ajv.addFormat('iri', (text: string) => isUri(toUri(text)));
  ajv.addFormat('iri-reference', (text: string) => isReference(toUri(text)));
  ajv.addFormat('idn-hostname', (text: string) => isHost(toAsciiHost(text)));
  ajv.addFormat('idn-email', (text: string) => {
    const at = text.lastIndexOf('@');
    const local = text.slice(0, Math.max(0, at)).replace(EACH_NOT_ASCII, 'x');
    return isEmail(`${local}@${toAsciiHost(text.slice(at + 1))}`);
  });
}

const NOT_ASCII = /[^\0-\x7f]/u;
const EACH_NOT_ASCII = /[^\0-\x7f]/gu;
const INTERNATIONAL_HOST = /^[a-z0-9.\x80-\u{10ffff}-]+$/iu;
const MAX_HOST_LENGTH = 253;

/** The URI of an IRI (RFC 3987, section 3.1). Half of a surrogate pair is left, which no URI has. */
function toUri(iri: string): string {
  return iri.isWellFormed() ? iri.replace(EACH_NOT_ASCII, encodeURIComponent) : iri;
}

/** The ASCII form of a host name (RFC 5891); empty if it has none. */
function toAsciiHost(host: string): string {
  if (!NOT_ASCII.test(host)) return host;
  // Node's function reads up to a / or another mark of URLs.
  return host.length <= MAX_HOST_LENGTH && INTERNATIONAL_HOST.test(host) ? domainToASCII(host) : '';
}

/** The check of a format that ajv knows. */
function checkOf({ formats }: Ajv2020, name: string): (text: string) => boolean {
  const format = formats[name];
  if (format instanceof RegExp) return (text) => format.test(text);
  const check = typeof format === 'object' && 'validate' in format ? format.validate : format;
  if (typeof check !== 'function') throw new Error(`ajv-formats has no ${name}`);
  return check as (text: string) => boolean;
}

/** The problem of a text that is not of the format. */
export function formatProblem(format: string, value: unknown): string {
  if (format === 'purl') return `is not a package URL: ${findPurlProblem(String(value)) ?? 'it is wrong'}`;
  return `must be ${FORMAT_NAMES[format] ?? `of the format ${format}`}`;
}
