import { hash } from 'node:crypto';
import { IN_TOTO_PAYLOAD_TYPE } from '../../../proof/statement/dsse.js';
import { leafRecordText } from '../../../proof/statement/leaf.js';

/**
 * The leaf record of a signed statement. Signature and public key are in base64. It is made of strings: by way of bytes it
 * takes three times as long.
 */
export function leafRecordOf(statement: string, signature: string, publicKey: string): string {
  return leafRecordText(hash('sha256', preAuthText(statement), 'base64'), signature, publicKey);
}

/** DSSE's pre-authentication encoding of a statement, as a string: `preAuthEncoding` returns the same as bytes. */
function preAuthText(statement: string): string {
  const { length } = IN_TOTO_PAYLOAD_TYPE;
  return `DSSEv1 ${length} ${IN_TOTO_PAYLOAD_TYPE} ${Buffer.byteLength(statement)} ${statement}`;
}
