/** Edits of a bundle with a public statement, and the parts of it that they change. */
import { toBase64, utf8 } from '../../../../src/proof/bytes/encoding.js';
import { jcs } from '../../../../src/proof/bytes/jcs.js';
import type { Bundle } from '../../verifying.js';

/** What is changed in a bundle. */
export type Change = (bundle: Bundle) => unknown;
/** Edits of a bundle of this kind, by what is forged. */
export type Edits = readonly [what: string, change: Change][];
export type Json = ReturnType<typeof JSON.parse>;

/** The Sigstore bundle in a bundle. */
export const sigstore = (b: Bundle) => b.sigstore_bundle;

/** Its signed statement. */
export const envelope = (b: Bundle) => b.sigstore_bundle.dsseEnvelope;

/** What it is verified with. */
export const material = (b: Bundle) => b.sigstore_bundle.verificationMaterial;

/** Its entry in the log. */
export const entry = (b: Bundle) => material(b).tlogEntries[0]!;

/** Its time stamps. */
export const stamps = (b: Bundle): Json => material(b);

/** Edits the signed statement, as canonical JSON. */
export function restate(change: (statement: Json) => unknown): Change {
  return (bundle) => {
    const statement = statementOf(bundle);
    change(statement);
    Object.assign(envelope(bundle), { payload: toBase64(utf8(jcs(statement))) });
  };
}

/** The statement that is signed, parsed. */
export function statementOf(bundle: Bundle): Json {
  return JSON.parse(Buffer.from(envelope(bundle).payload, 'base64').toString());
}

/** What the service says of the submission in it. */
export const annotation = (statement: Json) => statement.subject[0].annotations.attestation_service;

/** Makes the result a success. */
export const passes = (statement: Json) => Object.assign(statement.predicate, { result: 'PASSED' });
