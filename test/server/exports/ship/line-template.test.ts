/** What the API and exports write by templates, beside the renderers of their messages. */
import { createHash } from 'node:crypto';
import t from 'tap';
import { MetadataState } from '../../../../gen/attestation/v1/attestations_pb.js';
import { BatchStatus } from '../../../../gen/attestation/v1/batches_pb.js';
import { ProofBundleSchema, WitnessKind } from '../../../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { assembleBundle, prepareBatch } from '../../../../src/proof/bundle/bundle.js';
import { toBase64, toHex, utf8 } from '../../../../src/proof/bytes/encoding.js';
import { signCheckpoint } from '../../../../src/proof/log/checkpoint.js';
import { extendTiles, readFrom } from '../../../../src/proof/log/tile.js';
import { inclusionProof } from '../../../../src/proof/log/tile-proof.js';
import { statementText } from '../../../../src/proof/statement/statement.js';
import { sharedTexts } from '../../../../src/server/attestations/bundles/batch-proofs.js';
import {
  batchValues,
  createBundleWriter,
  createProofTexts,
} from '../../../../src/server/attestations/bundles/bundle-template.js';
import { statementOf } from '../../../../src/server/attestations/bundles/bundles.js';
import { createListRenderer } from '../../../../src/server/attestations/lists/list-template.js';
import { shownStatement } from '../../../../src/server/attestations/statements/stored-statement.js';
import type { ExportedRow } from '../../../../src/server/attestations/submissions/exported-rows.js';
import {
  submissionJson,
  submissionView,
} from '../../../../src/server/attestations/submissions/submission-message.js';
import type { SubmissionRow } from '../../../../src/server/attestations/submissions/submissions.js';
import { createLineRenderer } from '../../../../src/server/exports/ship/line-template.js';
import { compileWriter } from '../../../../src/server/json/codec.js';
import { fillTemplate, makeTemplate } from '../../../../src/server/json/template.js';
import { ed25519, PROJECT } from '../../../proof/sample.js';
import { FUZZ } from '../../../support/fuzz.js';

let seed = FUZZ.seed;

/** Bytes that follow from the seed. */
function bytes(length: number): Uint8Array {
  const blocks = Array.from({ length: Math.ceil(length / 32) }, () =>
    createHash('sha256').update(`${seed++}`).digest(),
  );
  return new Uint8Array(Buffer.concat(blocks).subarray(0, length));
}

const pick = <T>(...of: readonly T[]): T => of[(bytes(1)[0] ?? 0) % of.length] as T;

const TEXTS = ['purl', 'é — “q” \\ / \u2028 💣', '"sample id 1"', ''];

/** A row as the store has it, and as exports read it. */
function makeRow(logIndex: number): {
  row: SubmissionRow & Pick<ExportedRow, 'signed'>;
  exported: ExportedRow;
} {
  const isRedacted = pick(true, false, false);
  const schema = pick('purl', 'a.schema/nobody-knows', 'ünïcode 💣');
  const metadata = () => JSON.stringify({ note: pick(...TEXTS), schema });
  const own = {
    logIndex,
    id: `sub_${Buffer.from(bytes(13)).toString('hex')}`,
    schema,
    metadata: isRedacted ? null : metadata(),
    metadataState: pick(MetadataState.VALID, MetadataState.INVALID),
    metadataErrors: pick(null, '[]', JSON.stringify([{ path: pick(...TEXTS), message: pick(...TEXTS) }])),
    attestedSchema: pick(null, 'another'),
    attestedMetadata: isRedacted ? null : pick(null, metadata()),
    dsseKeyId: pick(1, 2),
  };
  const row = {
    ...own,
    logId: 1,
    projectId: PROJECT,
    submittedAt: new Date(pick(0, 1, 999, 1_795_374_000_123, 253_402_300_799_999)),
    artifactSha256: bytes(32),
    salt: isRedacted ? null : bytes(32),
    commitment: bytes(32),
    signature: bytes(pick(70, 71, 72)),
    leafHash: bytes(32),
    redactedAt: isRedacted ? new Date(1_795_374_000_000 + logIndex) : null,
    ...{
      build: null,
      batchId: null,
      batchTreeSize: null,
      batchStatus: null,
      witnessedAt: null,
      version: '',
      ownTiles: null,
      projectChanges: 0,
      stamps: '',
    },
    ...makeStatement(),
  };
  const exported = {
    ...own,
    submittedAtMs: row.submittedAt.getTime(),
    artifactSha256: toHex(row.artifactSha256),
    salt: row.salt && toHex(row.salt),
    commitment: toHex(row.commitment),
    signature: toBase64(row.signature),
    leafSha256: toHex(row.leafHash),
    redactedAtMs: row.redactedAt?.getTime() ?? null,
    statement: shownStatement(
      row.statementVersion,
      row.statementShown,
      row.statementErasedAt?.getTime() ?? null,
    ),
    signed: row.signed,
  };
  return { row, exported };
}

/** A statement that is made of the row, or a stored one, or what is left of one. */
function makeStatement() {
  if (pick(true, false))
    return { statementVersion: 1, statementShown: null, statementErasedAt: null, signed: null };
  const name = pick(...TEXTS);
  const claims = { ref: pick(...TEXTS) };
  const identity = pick(undefined, { issuer: 'https://issuer.example', subject: pick(...TEXTS), claims });
  const erasedAt = pick(null, new Date(1_795_374_000_456));
  return {
    statementVersion: pick(2, 3),
    statementShown: pick(null, JSON.stringify({ name, identity, subjects: pick(0, 3, undefined) })),
    statementErasedAt: erasedAt,
    signed:
      erasedAt === null ? `{${pick(...TEXTS)}}` : { digest: bytes(32), erasedAt: erasedAt.toISOString() },
  };
}

/** A log, and the proof of the batch `[first, size)` that later checkpoints cover as well. */
function makeBatchOf(sizes: readonly number[], environment: Environment) {
  const logKey = ed25519();
  const leaves = Array.from({ length: sizes.at(-1) ?? 0 }, () => bytes(32));
  const notes = sizes.map((size) => {
    const { root } = extendTiles({ size: 0, tiles: [] }, leaves.slice(0, size));
    return signCheckpoint({ origin: 'a.log', size, rootHash: root }, logKey);
  });
  const landedAt = new Date(1_795_374_001_000);
  const witnesses = sizes.flatMap((treeSize) => [
    {
      name: 'tsa — é',
      kind: WitnessKind.RFC3161,
      treeSize,
      evidence: bytes(900),
      detail: { serial: '1f' },
      landedAt,
    },
    {
      name: 'cosigner',
      kind: WitnessKind.LOG_WITNESS,
      treeSize,
      evidence: utf8(`— cosigner ${toBase64(bytes(76))}\n`),
      detail: { serial: '' },
      landedAt,
    },
  ]);
  const id = 'btc_01KE8G6A1B2C3D4E5F6G7H8J9K';
  const status = pick(BatchStatus.WITNESSED, BatchStatus.PARTIAL);
  const prepared = prepareBatch({ batch: { id, firstIndex: 0 }, logKey: logKey.publicKey, notes, witnesses });
  const witnessedAt = status === BatchStatus.WITNESSED ? landedAt : null;
  const batch = { id, status, witnessedAt };
  return {
    proof: { log: { environment }, batch, prepared, texts: sharedTexts(prepared) },
    readTile: readFrom(extendTiles({ size: 0, tiles: [] }, leaves).tiles),
    leaves: sizes[0] ?? 0,
  };
}

const write = compileWriter(ProofBundleSchema);
const KEYS = [bytes(91), bytes(91)];

for (const sizes of [[1], [2, 3], [300], [700, 701, 1100]]) {
  t.test(`texts of a batch in trees of ${sizes} leaves are those of their messages`, async (t) => {
    const environment = pick(Environment.LIVE, Environment.TEST);
    const { proof, readTile, leaves } = makeBatchOf(sizes, environment);
    const render = createLineRenderer({ proof, projectId: PROJECT });
    const writeBundle = createBundleWriter();
    const renderList = createListRenderer();
    const proofTexts = sizes.map(createProofTexts);
    const { id: batchId, status: batchStatus, witnessedAt } = proof.batch;
    // In order, and back again.
    const order = [...Array(leaves).keys()];
    for (const logIndex of [...order, ...order.filter((i) => i % 7 === 0).reverse()]) {
      const { row, exported } = makeRow(logIndex);
      const dsseKey = KEYS[row.dsseKeyId - 1] ?? bytes(91);
      const proofs = proofTexts.map((textOf) => textOf(logIndex, readTile));
      const stamps = pick([], [bytes(900)], [bytes(900), bytes(901)]).map(toBase64);
      const isStampPending = pick(true, false);
      const { template, values } = render({ row: exported, dsseKey, proofs, stamps, isStampPending });
      const inclusionProofs = sizes.map((size) => inclusionProof(logIndex, size, readTile));
      const view = submissionView({ ...row, batchId, batchStatus, witnessedAt });
      const later = { ...view, batchId: pick(null, 'btc_later'), id: 'sub_later' };
      const submission = statementOf(row, environment);
      const statement = row.signed ?? statementText(submission);
      const { signature } = row;
      const spelled = proofs.map((text) => Buffer.from(text).toString());
      const proven = { inclusionProofs, proofs: spelled, stamps, isStampPending };
      const leaf = { submission, statement, signature, dsseKey, logIndex, ...proven };
      const bundle = write(assembleBundle(proof.prepared, leaf));
      const text = submissionJson(view, environment);
      const bundleBytes = writeBundle(`${row.dsseKeyId}`, batchValues(proof.prepared, proof.texts), leaf);
      const made = [
        fillTemplate(template, values).toString(),
        bundleBytes.toString(),
        renderList([view, view, later], environment),
      ];
      const wanted = [
        `{"submission":${text},"bundle":${bundle}}\n`,
        bundle,
        `[${text},${text},${submissionJson(later, environment)}]`,
      ];
      if (made.join() !== wanted.join()) return t.same(made, wanted, `leaf ${logIndex}`);
    }
    return t.pass(`${order.length} lines`);
  });
}

t.test("a template whose output differs from its renderer's is rejected", async (t) => {
  const make = (render: (n: string) => string, [a, b] = ['one', 'two']) =>
    makeTemplate<string>(render, (n) => [n], [a ?? '', b ?? '']);
  t.equal(
    fillTemplate(
      make((n) => `<${n}|é|${n}>`),
      ['💣'],
    ).toString(),
    '<💣|é|💣>',
  );
  const refused = /does not write what its renderer does/;
  t.throws(() => make((n) => `${n} ${n.length * 3} one`), refused, 'the value is in the constant text');
  t.throws(() => make((n) => `${n} ${n.toUpperCase()}`), refused, 'it is there in another spelling');
  t.throws(() => make((n) => (n === 'one' ? n : `${n}, too`)), refused, 'the text varies with it');
});
