/** The OpenTimestamps proof of one submission, from its bundle. */
import { type BundleWitness, type ProofBundle, WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { fromHex } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { checkpointDigest, parseCheckpoint } from '../log/checkpoint.js';
import { leafTimestamp } from '../opentimestamps/checkpoint-timestamp.js';
import { encodeOts, parseOtsOf } from '../opentimestamps/detached-file.js';
import { mergeTimestamps, type Timestamp } from '../opentimestamps/timestamp.js';

/**
 * Writes the .ots file of the leaf at `index`, from the evidence of all OpenTimestamps witnesses of the bundle. Its
 * digest is `leaf_sha256`: the stamped file is the byte 00 and the leaf record. Returns undefined if no evidence covers
 * it.
 */
export function leafOts(bundle: ProofBundle, index: number): Uint8Array | undefined {
  const timestamps = bundle.witnesses.flatMap((witness) => findLeafTimestamp(bundle, witness, index));
  return timestamps.length === 0 ? undefined : encodeOts(timestamps.reduce(mergeTimestamps));
}

/** None if the evidence is of another form, or deeper than other readers accept. */
function findLeafTimestamp(bundle: ProofBundle, witness: BundleWitness, index: number): Timestamp[] {
  const checkpoint = bundle.checkpoints.find(({ treeSize }) => treeSize === witness.treeSize);
  if (witness.kind !== WitnessKind.OPENTIMESTAMPS || checkpoint === undefined) return [];
  try {
    const { size, rootHash, note } = parseCheckpoint(checkpoint.note);
    const hashes = { rootHash, digest: checkpointDigest(note.text) };
    const leafHash = fromHex(bundle.submission?.leafSha256 ?? '', 32);
    const inclusion = { leafHash, index, size, proof: checkpoint.inclusionProof };
    const found = leafTimestamp(inclusion, hashes, parseOtsOf(hashes.digest, witness.evidence));
    if (found === undefined) return [];
    encodeOts(found);
    return [found];
  } catch (error) {
    if (error instanceof FormatError) return [];
    throw error;
  }
}
