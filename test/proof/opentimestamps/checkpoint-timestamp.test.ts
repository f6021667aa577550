import t from 'tap';
import { concatBytes, utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { leafHash } from '../../../src/proof/log/merkle.js';
import { extendTiles, readFrom } from '../../../src/proof/log/tile.js';
import { inclusionProof } from '../../../src/proof/log/tile-proof.js';
import {
  bitcoinAttestations,
  checkpointTimestamp,
  digestToSubmit,
  findSubmitted,
  leafTimestamp,
} from '../../../src/proof/opentimestamps/checkpoint-timestamp.js';
import { inclusionOperations } from '../../../src/proof/opentimestamps/inclusion-path.js';
import { applyOperation } from '../../../src/proof/opentimestamps/operation.js';
import { makeTimestamp } from '../../../src/proof/opentimestamps/timestamp.js';

const NONCE = new Uint8Array(16).fill(7);
const DIGEST = sha256(utf8('a checkpoint'));

function tree(size: number) {
  const leaves = Array.from({ length: size }, (_, i) => leafHash(utf8(`leaf ${i}`)));
  const { root, tiles } = extendTiles({ size: 0, tiles: [] }, leaves);
  return { leaves, root, prove: (index: number) => inclusionProof(index, size, readFrom(tiles)) };
}

t.test(
  'the operations of an inclusion proof lead to the root, for every leaf of every small tree',
  async (t) => {
    for (const size of [...Array(20).keys(), 255, 256, 257, 700].filter((n) => n > 0)) {
      const { leaves, root, prove } = tree(size);
      for (const [index, leaf] of leaves.entries()) {
        const proof = prove(index);
        const end = inclusionOperations(index, size, proof).reduce(
          (message, operation) => applyOperation(operation, message),
          leaf,
        );
        if (!Buffer.from(end).equals(root)) t.fail(`leaf ${index} of ${size}`);
        t.throws(() => inclusionOperations(index, size, [...proof, leaf]), FormatError);
        if (size > 1) t.throws(() => inclusionOperations(index, size, proof.slice(1)), FormatError);
      }
    }
  },
);

t.test('a leaf’s timestamp ends where its checkpoint’s does', async (t) => {
  const { leaves, root, prove } = tree(21);
  const hashes = { rootHash: root, digest: DIGEST };
  const submitted = sha256(concatBytes(sha256(concatBytes(root, DIGEST)), NONCE));
  t.strictSame(digestToSubmit(hashes, NONCE), submitted);
  const attested = makeTimestamp(submitted, [{ kind: 'bitcoin', height: 9 }]);
  const ofCheckpoint = checkpointTimestamp(hashes, NONCE, attested);
  t.throws(() => checkpointTimestamp(hashes, submitted, attested), FormatError, 'with another nonce');
  t.strictSame(findSubmitted(ofCheckpoint, root), submitted);
  t.equal(findSubmitted(ofCheckpoint, DIGEST), undefined, 'of another root');
  const leaf = { leafHash: leaves[13]!, index: 13, size: 21, proof: prove(13) };
  const ofLeaf = leafTimestamp(leaf, hashes, ofCheckpoint)!;
  t.strictSame(ofLeaf.message, leaves[13]);
  t.match(bitcoinAttestations(ofLeaf), [{ height: 9, merkleRoot: submitted }]);
  t.match(bitcoinAttestations(ofCheckpoint), [{ height: 9, merkleRoot: submitted }]);
  t.throws(() => leafTimestamp({ ...leaf, leafHash: leaves[14]! }, hashes, ofCheckpoint), FormatError);
  const other = makeTimestamp(DIGEST, [{ kind: 'bitcoin', height: 9 }]);
  t.equal(leafTimestamp(leaf, hashes, other), undefined, 'without the root in it');
});

t.test(
  'Bitcoin attestations of anything but a hash do not count, and the lowest block comes first',
  async (t) => {
    const [high, low] = [8, 3].map((height) => ({ kind: 'bitcoin', height }) as const);
    t.match(bitcoinAttestations(makeTimestamp(DIGEST, [high!, low!])), [{ height: 3 }, { height: 8 }]);
    t.strictSame(bitcoinAttestations(makeTimestamp(DIGEST.slice(1), [low!])), []);
  },
);
