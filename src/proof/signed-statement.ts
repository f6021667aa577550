import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from './dsse.js';
import { fromHex, utf8 } from './encoding.js';
import { leafOf } from './leaf.js';
import { metadataCommitment, type StatementFields, statementBytes } from './statement.js';

/** A statement to be: its fields, with the metadata (JCS) and the salt that its commitment is made of. */
export type StatementDraft = Omit<StatementFields, 'commitment'> & {
  readonly metadata: string;
  readonly salt: Uint8Array;
};

/** What becomes of a draft: the commitment (32 bytes), the DSSE signature (DER), the leaf hash (32 bytes). */
export type SignedStatement = { commitment: Uint8Array; signature: Uint8Array; leafHash: Uint8Array };

/** The key of statements: P-256, its public part as SPKI in DER; `sign` gives ECDSA with SHA-256 in DER. */
export type StatementKey = { spki: Uint8Array; sign: (data: Uint8Array) => Uint8Array };

/** Commits to the metadata, makes the statement, signs it and hashes the leaf record. */
export function signStatement(
  { metadata, salt, ...fields }: StatementDraft,
  key: StatementKey,
): SignedStatement {
  const commitment = metadataCommitment(salt, utf8(metadata));
  const signed = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, statementBytes({ ...fields, commitment }));
  const signature = key.sign(signed);
  return { commitment: fromHex(commitment), signature, leafHash: leafOf(signed, signature, key.spki).hash };
}
