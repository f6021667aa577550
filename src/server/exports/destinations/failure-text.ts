/** Words for the owner of a destination about failures of the network and texts of providers. */
import { firstError } from '../../../protocol/first-error.js';

/** A failure of a transfer that Node has no code for. The message is a predicate: `the host <message>`. */
export class TransferError extends Error {
  override readonly name = 'TransferError';
}

const TLS_CODE = /CERT|TLS|SSL|SELF_SIGNED|^UNABLE_TO_|^EPROTO$/;

/** The behaviour of a host, by Node's error code. */
const PREDICATES: Readonly<Record<string, string>> = {
  ENOTFOUND: 'has no address; correct the name',
  ENODATA: 'has no address; correct the name',
  EAI_AGAIN: 'cannot be looked up',
  ESERVFAIL: 'cannot be looked up',
  ETIMEOUT: 'cannot be looked up',
  ECONNREFUSED: 'refuses the connection',
  ECONNRESET: 'closed the connection',
  EPIPE: 'closed the connection',
  EHOSTUNREACH: 'is not reachable',
  ENETUNREACH: 'is not reachable',
  ETIMEDOUT: 'timed out',
  HPE_HEADER_OVERFLOW: 'sent headers that are too large',
};

/** One line of printable text, cut to a length. */
export function oneLine(text: string, length: number): string {
  const line = text
    .slice(0, length * 2)
    .replaceAll(/[\s\p{C}]+/gu, ' ')
    .trim();
  return line.length > length ? `${line.slice(0, length)}…` : line;
}

/** Explains why a request got no answer. */
export function explainNetworkError(error: unknown, host: string): string {
  const first = firstError(error);
  const { code, message } = Object(first) as { code?: unknown; message?: unknown };
  const text = typeof message === 'string' ? oneLine(message, 200) : '';
  if (first instanceof TransferError) return `${host} ${text}`;
  if (typeof code !== 'string') return text === '' ? `the connection to ${host} failed` : `${host}: ${text}`;
  return `${host} ${predicateOf(code)} (${code})`;
}

/** The behaviour of a host as a predicate, by Node's error code. */
export function predicateOf(code: string): string {
  if (Object.hasOwn(PREDICATES, code)) return PREDICATES[code] as string;
  if (TLS_CODE.test(code)) return 'has a certificate that is not trusted, or TLS failed';
  return code.startsWith('HPE_') ? 'sent an answer that is not HTTP/1.1' : 'failed';
}
