import { clone } from '@bufbuild/protobuf';
import t from 'tap';
import { BundleWitnessSchema, ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { leafOts } from '../../../src/proof/bundle/leaf-ots.js';
import { fromHex, toHex } from '../../../src/proof/bytes/encoding.js';
import { encodeOts, parseOtsOf } from '../../../src/proof/opentimestamps/detached-file.js';
import { attestationsOf } from '../../../src/proof/opentimestamps/timestamp.js';
import { runForeign } from '../../support/witnesses/opentimestamps/foreign.js';
import { bitcoinEvidence, HEIGHT, MINED_AT, timestampOver } from '../opentimestamps/bitcoin-evidence.js';
import { LOG_INDEX } from '../sample.js';
import { makeSample } from '../sample-bundles.js';
import { service } from '../verifying.js';

const { bundle } = await makeSample(service, ['log', 'tsa', 'calendar']);
const { note } = bundle.checkpoints[0]!;
const leafHash = fromHex(bundle.submission!.leafSha256);

function changed(change: (copy: typeof bundle) => void) {
  const copy = clone(ProofBundleSchema, bundle);
  change(copy);
  return leafOts(copy, LOG_INDEX);
}

t.test('foreign software reads the block from the .ots file of a leaf', async (t) => {
  const file = leafOts(bundle, LOG_INDEX)!;
  const header = bitcoinEvidence(note).headers.get(HEIGHT)!;
  t.strictSame(await runForeign([['verify', [toHex(file), toHex(header)]]]), [
    { times: [MINED_AT.getTime() / 1_000] },
  ]);
  t.equal(attestationsOf(parseOtsOf(leafHash, file)).length, 1);
});

t.test('the evidence of several witnesses is in one file', async (t) => {
  const file = changed(({ witnesses }) => {
    const other = clone(BundleWitnessSchema, witnesses[2]!);
    const attestation = { kind: 'bitcoin', height: HEIGHT + 1 } as const;
    witnesses.push({ ...other, name: 'other', evidence: encodeOts(timestampOver(note, attestation)) });
  })!;
  const heights = attestationsOf(parseOtsOf(leafHash, file)).map(({ attestation }) => attestation);
  t.match(heights, [{ height: HEIGHT }, { height: HEIGHT + 1 }]);
});

t.test('evidence that does not lead to the checkpoint has no file', async (t) => {
  t.equal(leafOts(bundle, LOG_INDEX + 1), undefined, 'another leaf');
  t.equal(
    changed(({ witnesses }) => witnesses.pop()),
    undefined,
    'no evidence',
  );
  t.equal(
    changed(({ checkpoints }) => checkpoints.pop()),
    undefined,
    'no checkpoint',
  );
  t.equal(
    changed(({ witnesses }) => Object.assign(witnesses[2]!, { evidence: new Uint8Array(5) })),
    undefined,
    'no .ots file',
  );
  t.equal(
    changed(({ checkpoints }) => checkpoints[0]!.inclusionProof.pop()),
    undefined,
    'no whole proof',
  );
});
