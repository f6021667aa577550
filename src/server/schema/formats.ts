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
  const dateTime = ajv.formats['date-time'];
  const isDateTime =
    typeof dateTime === 'object' && 'validate' in dateTime && typeof dateTime.validate === 'function'
      ? (dateTime.validate as (text: string) => boolean)
      : undefined;
  if (isDateTime === undefined) throw new Error('ajv-formats has no date-time');
  // Its own takes a space for the T, and offsets without minutes.
  ajv.addFormat('date-time', (text: string) => RFC3339.test(text) && isDateTime(text));
  ajv.addFormat('base64', BASE64);
  ajv.addFormat('purl', isPurl);
}

/** The problem of a text that is not of the format. */
export function formatProblem(format: string, value: unknown): string {
  if (format === 'purl') return `is not a package URL: ${findPurlProblem(String(value)) ?? 'it is wrong'}`;
  return `must be ${FORMAT_NAMES[format] ?? `of the format ${format}`}`;
}
