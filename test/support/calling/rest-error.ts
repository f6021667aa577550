import type { JsonObject } from '@bufbuild/protobuf';
import { decode } from 'cborg';

/** An error of REST, of either form. */
export type RestError = { code: string; message: string; details: JsonObject; request_id: string };

/** The media type of concise problem details (RFC 9290). */
export const CONCISE_PROBLEM = 'application/concise-problem-details+cbor';

/** The error that an answer has: its envelope, or its concise problem details. */
export function restError(contentType: unknown, body: Uint8Array): RestError {
  if (contentType !== CONCISE_PROBLEM) return JSON.parse(Buffer.from(body).toString()).error;
  const problem: Map<unknown, unknown> = decode(body, { useMaps: true });
  const entry = plain(problem.get('urn:attestation-service:error') ?? new Map()) as Omit<
    RestError,
    'message'
  >;
  const { code, details, request_id } = entry;
  return { code, message: String(problem.get(-2)), details, request_id };
}

function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!(value instanceof Map)) return value;
  return Object.fromEntries([...value].map(([name, member]) => [name, plain(member)]));
}
