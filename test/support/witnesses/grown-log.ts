/** A small log of a test, with a second history that splits off where the test says. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { encodeAddCheckpoint } from '../../../src/proof/log/add-checkpoint.js';
import { checkpointBody, signCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { leafHash } from '../../../src/proof/log/merkle.js';
import { encodeVerifierKey, type NoteKey, noteKey } from '../../../src/proof/log/note.js';
import { extendTiles, readFrom } from '../../../src/proof/log/tile.js';
import { consistencyProof } from '../../../src/proof/log/tile-proof.js';

/** One history of a log: its checkpoints, signed, and the proofs between them. */
export type History = {
  root(size: number): Uint8Array;
  body(size: number): string;
  note(size: number): string;
  prove(oldSize: number, newSize: number): Uint8Array[];
  /** The body of an add-checkpoint request. */
  request(oldSize: number, newSize: number): string;
};

export type GrownLog = History & {
  origin: string;
  key: NoteKey;
  verifierKey: string;
  signer: { publicKey: Uint8Array; sign: (data: Uint8Array) => Uint8Array };
  /** The history that is the same up to `size` and another one beyond, signed with the same key. */
  fork(size: number): History;
};

/** Makes a log of at most `maxSize` leaves. */
export function growLog(origin: string, maxSize = 300): GrownLog {
  const { privateKey } = generateKeyPairSync('ed25519');
  const signer = {
    publicKey: new Uint8Array(Buffer.from(privateKey.export({ format: 'jwk' }).x ?? '', 'base64url')),
    sign: (data: Uint8Array) => new Uint8Array(sign(null, data, privateKey)),
  };
  const key = noteKey(origin, signer.publicKey);
  const historyOf = (forkedAt: number): History => {
    const leaves = Array.from({ length: maxSize }, (_, i) =>
      leafHash(utf8(i < forkedAt ? `leaf ${i}` : `other leaf ${i}`)),
    );
    const trees = new Map<number, ReturnType<typeof extendTiles>>();
    const treeOf = (size: number) => {
      const tree = trees.get(size) ?? extendTiles({ size: 0, tiles: [] }, leaves.slice(0, size));
      trees.set(size, tree);
      return tree;
    };
    const root = (size: number) => treeOf(size).root;
    const note = (size: number) => signCheckpoint({ origin, size, rootHash: root(size) }, signer);
    const prove = (oldSize: number, newSize: number) =>
      consistencyProof(oldSize, newSize, readFrom(treeOf(newSize).tiles));
    return {
      root,
      note,
      prove,
      body: (size) => checkpointBody({ origin, size, rootHash: root(size) }),
      request: (oldSize, newSize) =>
        encodeAddCheckpoint({ oldSize, proof: prove(oldSize, newSize), note: note(newSize) }),
    };
  };
  return {
    ...historyOf(maxSize),
    origin,
    key,
    verifierKey: encodeVerifierKey(key),
    signer,
    fork: historyOf,
  };
}
