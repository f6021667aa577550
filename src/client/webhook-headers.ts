/** The signature headers of a delivery: `Service-Signature`, and those of Standard Webhooks. */
import { concatBytes, fromBase64, fromHex, utf8 } from '../proof/bytes/encoding.js';
import { WebhookVerificationError } from './webhook-verification-error.js';

/** Headers of fetch, of Node, or as pairs; names in any case. */
export type WebhookHeaders =
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** The parsed signature header: signed content, time and MACs. */
export type Signature = {
  readonly header: string;
  readonly content: Uint8Array;
  /** In seconds since 1970. */
  readonly timestamp: number;
  readonly macs: readonly Uint8Array[];
};

const SERVICE = 'service-signature';
const STANDARD = 'webhook-signature';
const STANDARD_ID = 'webhook-id';
const STANDARD_TIMESTAMP = 'webhook-timestamp';
const MAX_HEADER_CHARACTERS = 4_096;
const MAC_BYTES = 32;

/** Parses the signatures in the headers, at least one. Throws WebhookVerificationError `header.*`. */
export function readSignatures(headers: WebhookHeaders, body: Uint8Array): Signature[] {
  const byName = collect(headers);
  const own = byName.get(SERVICE);
  const standard = byName.get(STANDARD);
  const signatures = [
    ...(own === undefined ? [] : [readOwn(own, body)]),
    ...(standard === undefined ? [] : [readStandard(standard, byName, body)]),
  ];
  if (signatures.length > 0) return signatures;
  throw new WebhookVerificationError('header.missing', `the request has no ${SERVICE} or ${STANDARD} header`);
}

/** Headers by lower-case name. Repeated ones are joined by a comma, so a repeated signature header is malformed. */
function collect(headers: WebhookHeaders): Map<string, string> {
  const byName = new Map<string, string>();
  for (const [rawName, value] of pairsOf(headers)) {
    const name = rawName.toLowerCase();
    const before = byName.get(name);
    byName.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return byName;
}

function* pairsOf(headers: WebhookHeaders): Iterable<readonly [string, string]> {
  if (isIterable(headers)) return yield* headers;
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    for (const one of typeof value === 'string' ? [value] : value) yield [name, one];
  }
}

function isIterable(headers: WebhookHeaders): headers is Iterable<readonly [string, string]> {
  return Symbol.iterator in headers;
}

/** `t=<seconds>,v1=<hex>`, with one v1 for each secret. Members with other names are ignored: future schemes. */
function readOwn(text: string, body: Uint8Array): Signature {
  const members = split(SERVICE, text, ',').map((member) => member.trim());
  const [t, ...more] = valuesAfter('t=', members);
  if (t === undefined || more.length > 0) throw malformed(SERVICE, 'one t=');
  const timestamp = readTimestamp(SERVICE, t);
  const macs = readMacs(SERVICE, valuesAfter('v1=', members), { form: 'a v1=', decode: fromHex });
  return { header: SERVICE, content: concatBytes(utf8(`${t}.`), body), timestamp, macs };
}

/** `v1,<base64>` for each secret, separated by spaces (Standard Webhooks, "Verifying signatures"). */
function readStandard(text: string, byName: ReadonlyMap<string, string>, body: Uint8Array): Signature {
  const id = byName.get(STANDARD_ID);
  const t = byName.get(STANDARD_TIMESTAMP);
  if (id === undefined || id === '') throw malformed(STANDARD, `a ${STANDARD_ID} beside it`);
  if (t === undefined) throw malformed(STANDARD, `a ${STANDARD_TIMESTAMP} beside it`);
  const timestamp = readTimestamp(STANDARD_TIMESTAMP, t);
  const texts = valuesAfter('v1,', split(STANDARD, text, ' '));
  const macs = readMacs(STANDARD, texts, { form: 'a v1,', decode: fromBase64 });
  return { header: STANDARD, content: concatBytes(utf8(`${id}.${t}.`), body), timestamp, macs };
}

function split(header: string, text: string, separator: string): string[] {
  if (text.length > MAX_HEADER_CHARACTERS) throw malformed(header, 'less text');
  return text.split(separator);
}

function valuesAfter(prefix: string, members: readonly string[]): string[] {
  return members.filter((member) => member.startsWith(prefix)).map((member) => member.slice(prefix.length));
}

function readTimestamp(header: string, text: string): number {
  if (!/^[0-9]{1,12}$/.test(text)) throw malformed(header, 'a time in whole seconds');
  return Number(text);
}

/** The well-formed MACs, at least one: what stands beside them, whatever its form, takes nothing from their proof. */
function readMacs(
  header: string,
  texts: readonly string[],
  { form, decode }: { form: string; decode: (text: string, length: number) => Uint8Array },
): Uint8Array[] {
  if (texts.length === 0) throw malformed(header, form);
  let problem: unknown;
  const macs = texts.flatMap((text) => {
    try {
      return [decode(text, MAC_BYTES)];
    } catch (error) {
      problem = error;
      return [];
    }
  });
  if (macs.length === 0) throw malformed(header, 'v1 signatures of 32 bytes', problem);
  return macs;
}

function malformed(header: string, wanted: string, cause?: unknown): WebhookVerificationError {
  return new WebhookVerificationError('header.malformed', `${header} should have ${wanted}`, { cause });
}
