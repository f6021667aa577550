/** Signed statements of SCITT, made by the cborg library and Node's crypto as clients make theirs. */
import { type KeyObject, sign } from 'node:crypto';
import { encode } from 'cborg';

/** A header's or claims' map by its labels. */
type Labelled = Map<number | string, unknown>;

/** What a statement has in the place of the usual. Headers are added to the usual ones. */
export type StatementParts = {
  issuer?: unknown;
  subject?: unknown;
  algorithm?: unknown;
  header?: Labelled;
  unprotected?: unknown;
  payload?: Uint8Array | null;
  /** Signs with ES256; without it the signature is of no key. */
  key?: KeyObject;
};

/** A COSE_Sign1 with its tag, whose labels are in the order of the draft's examples, which is not that of their encodings. */
export function signedStatement(parts: StatementParts = {}): Uint8Array {
  const { issuer = 'https://vendor.example', subject = 'pkg:npm/a@1.0.0', algorithm = -7 } = parts;
  const { payload = Buffer.from('{"a":1}'), unprotected = new Map() } = parts;
  const header: Labelled = new Map<number | string, unknown>([
    [1, algorithm],
    [4, Buffer.from('key 1')],
    [3, 'application/json'],
    ...(parts.header ?? []),
    [
      15,
      new Map([
        [1, issuer],
        [2, subject],
      ] as const),
    ],
  ]);
  const protectedHeader = encodeInOrder(header);
  const toSign = encode(['Signature1', protectedHeader, new Uint8Array(), payload]);
  const signature =
    parts.key === undefined
      ? Buffer.alloc(64, 7)
      : sign('sha256', toSign, { key: parts.key, dsaEncoding: 'ieee-p1363' });
  return tagged([protectedHeader, unprotected, payload, signature]);
}

/** The members of a COSE_Sign1, encoded behind its tag. */
export function tagged(members: unknown): Uint8Array {
  return Buffer.concat([Buffer.of(0xd2), encodeInOrder(members)]);
}

/** CBOR whose maps are in the order of their entries. */
export function encodeInOrder(value: unknown): Uint8Array {
  return encode(value, { mapSorter: () => 0 });
}
