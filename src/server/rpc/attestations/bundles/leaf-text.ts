import { hash } from 'node:crypto';
import { IN_TOTO_PRE_AUTH } from '../../../../proof/statement/dsse.js';
import { leafRecordText } from '../../../../proof/statement/leaf.js';

/** What a bundle says of its leaf: statement and leaf record in base64, and the leaf's hash in hex. */
type LeafTexts = { payload: string; record: string; leafSha256: string };

/** Where a statement is written: there is room for the head and the length before it. */
export const STATEMENT_AT = IN_TOTO_PRE_AUTH.length + 16;
/** Most statements and records fit. */
let scratch = Buffer.allocUnsafeSlow(8192);

/**
 * The texts of the leaf of a signed statement. Signature and public key are in base64. Texts are hashed and encoded in one
 * buffer that is used again: 2.9 µs, by way of new strings and buffers 4.1.
 */
export function leafTextsOf(statement: string, signature: string, publicKey: string): LeafTexts {
  const { digest, end } = writePreAuth(statement);
  const payload = scratch.toString('base64', STATEMENT_AT, end);
  const record = leafRecordText(digest, signature, publicKey);
  reserve(1 + record.length);
  // A leaf's hash is of a zero byte and the record, which is ASCII (RFC 6962, section 2.1).
  scratch[0] = 0;
  const recordEnd = 1 + scratch.write(record, 1, 'latin1');
  return {
    payload,
    record: scratch.toString('base64', 1, recordEnd),
    leafSha256: hash('sha256', scratch.subarray(0, recordEnd), 'hex'),
  };
}

/**
 * Writes DSSE's pre-authentication encoding of a statement, so that the statement begins at {@link STATEMENT_AT}.
 * `preAuthEncoding` returns the same.
 *
 * @returns its SHA-256 in base64, and its end
 */
function writePreAuth(statement: string): { digest: string; end: number } {
  // A UTF-16 code unit takes three bytes of UTF-8 at most.
  reserve(STATEMENT_AT + 3 * statement.length);
  const end = STATEMENT_AT + scratch.write(statement, STATEMENT_AT);
  const start = writeHead(scratch, end);
  return { digest: hash('sha256', scratch.subarray(start, end), 'base64'), end };
}

/**
 * Writes what precedes a statement in its pre-authentication encoding. The statement is at {@link STATEMENT_AT}, up to `end`.
 *
 * @returns where the encoding begins
 */
export function writeHead(target: Buffer, end: number): number {
  const head = `${IN_TOTO_PRE_AUTH}${end - STATEMENT_AT} `;
  const start = STATEMENT_AT - head.length;
  target.write(head, start, 'latin1');
  return start;
}

function reserve(bytes: number): void {
  if (scratch.length < bytes) scratch = Buffer.allocUnsafeSlow(bytes);
}
