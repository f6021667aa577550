/** Proof bundles as JSON: of each kind one template, made by the renderer of their messages. */
import { create } from '@bufbuild/protobuf';
import { BundleBatchSchema, ProofBundleSchema } from '../../../../gen/attestation/v1/bundle_pb.js';
import { assembleBundle, type LeafParts, type PreparedBatch } from '../../../proof/bundle/bundle.js';
import { toBase64 } from '../../../proof/bytes/encoding.js';
import { type StatementFields, statementText } from '../../../proof/statement/statement.js';
import { compileSplicingWriter } from '../../json/codec.js';
import { fillTemplate, makeTemplate, type TemplateValue, type TextTemplate } from '../../json/template.js';
import { leafTextsOf } from './leaf-text.js';

/** The JSON of the fields that all of a batch's bundles have in common. */
export type BatchTexts = { readonly batch: string; readonly witnesses: string };

/** What a batch's bundles share, as they spell it. */
export type BatchValues = {
  /** SHA-256 that names the log in Sigstore bundles. */
  readonly logId: Uint8Array;
  /** The sizes of the trees of its checkpoints. */
  readonly sizes: readonly number[];
  readonly values: readonly Uint8Array[];
};

const write = compileSplicingWriter(ProofBundleSchema);

/** Renders a bundle as JSON, from what the bundles of its batch share. */
export function bundleJson(
  { prepared, texts }: { prepared: PreparedBatch; texts: BatchTexts },
  leaf: LeafParts,
): string {
  return write(assembleBundle(prepared, leaf), texts);
}

/** Spells what a batch's bundles share. */
export function batchValues(prepared: PreparedBatch, texts: BatchTexts): BatchValues {
  const { logId, checkpoints } = prepared;
  const spelled = spellBatch(prepared, texts);
  // Parts of one: short buffers would keep those alive that Node makes them from.
  const bytes = Buffer.from(spelled.join(''));
  let end = 0;
  return {
    logId,
    sizes: checkpoints.map(({ size }) => size),
    values: spelled.map((text) => {
      const start = end;
      end += Buffer.byteLength(text);
      return bytes.subarray(start, end);
    }),
  };
}

function spellBatch({ rootHash, checkpoints }: PreparedBatch, { batch, witnesses }: BatchTexts): string[] {
  const spelled = checkpoints.flatMap(({ size, note }) => [String(size), JSON.stringify(note).slice(1, -1)]);
  return [batch, witnesses, toBase64(rootHash), ...spelled];
}

type Kind = { template: TextTemplate; publicKey: string };

/** A leaf whose inclusion proofs are spelled: each as the elements of a JSON array. */
type SpelledLeaf = Omit<LeafParts, 'inclusionProofs'> & { readonly proofs: readonly TemplateValue[] };

/** Writes a bundle as {@link bundleJson} does. `of` names its log and DSSE key. */
type WriteBundle = (of: string, batch: BatchValues, leaf: SpelledLeaf) => Buffer;

/** Creates a writer. Bundles of a log with the same DSSE key and number of checkpoints are of one kind: there are few. */
export function createBundleWriter(): WriteBundle {
  const kinds = new Map<string, Kind>();
  return (of, batch, leaf) => {
    const name = `${of} ${batch.sizes.length}`;
    let kind = kinds.get(name);
    if (kind === undefined) {
      kind = { template: makeBundleTemplate(batch, leaf), publicKey: toBase64(leaf.dsseKey) };
      kinds.set(name, kind);
    }
    return fillTemplate(kind.template, valuesOf(batch.values, leaf, kind.publicKey));
  };
}

/** The values of a bundle as they are spelled in it. */
function valuesOf(
  batch: readonly TemplateValue[],
  { statement, signature, logIndex, proofs }: Omit<SpelledLeaf, 'dsseKey'>,
  publicKey: string,
): TemplateValue[] {
  const text = statementText(statement);
  const signed = toBase64(signature);
  const { payload, record, leafSha256 } = leafTextsOf(text, signed, publicKey);
  return [
    statement.submissionId,
    statement.submittedAt,
    statement.artifactSha256,
    leafSha256,
    String(logIndex),
    payload,
    signed,
    record,
    ...batch,
    ...proofs,
  ];
}

type Sample = { prepared: PreparedBatch; texts: BatchTexts; leaf: LeafParts };

function makeBundleTemplate(
  { logId, sizes }: BatchValues,
  { dsseKey, statement }: Pick<LeafParts, 'dsseKey' | 'statement'>,
): TextTemplate {
  const publicKey = toBase64(dsseKey);
  const sample = (n: 1 | 2): Sample => ({
    prepared: sampleBatch(logId, sizes.length, n),
    texts: { batch: `{"sample batch":${n}}`, witnesses: `["sample witnesses ${n}"]` },
    leaf: {
      statement: sampleStatement(statement, n),
      signature: sampleBytes('signature', n),
      dsseKey,
      logIndex: Number.MAX_SAFE_INTEGER - n,
      inclusionProofs: sizes.map((_, i) => [sampleBytes(`sibling ${i}`, n)]),
    },
  });
  return makeTemplate(
    ({ leaf, ...batch }) => bundleJson(batch, leaf),
    // The samples are ASCII.
    ({ prepared, texts, leaf }) => {
      const proofs = leaf.inclusionProofs.map((hashes) => hashes.map((hash) => `"${toBase64(hash)}"`).join());
      return valuesOf(spellBatch(prepared, texts), { ...leaf, proofs }, publicKey) as string[];
    },
    [sample(1), sample(2)],
  );
}

/** Values that are in no other sample, and no part of one another. */
function sampleBatch(logId: Uint8Array, checkpoints: number, n: 1 | 2): PreparedBatch {
  return {
    batch: create(BundleBatchSchema),
    rootHash: sampleBytes('root', n),
    logId,
    checkpoints: Array.from({ length: checkpoints }, (_, i) => ({
      size: 8e15 + 10 * i + n,
      note: `sample note ${i} ${n}\n`,
    })),
    witnesses: [],
  };
}

function sampleStatement(statement: StatementFields, n: number): StatementFields {
  return {
    ...statement,
    submissionId: `sample id ${n}`,
    submittedAt: new Date(Date.UTC(9000, 0, n)).toISOString(),
    artifactSha256: Buffer.from(sampleBytes('artifact', n)).toString('hex'),
  };
}

function sampleBytes(of: string, n: number): Uint8Array {
  return Buffer.from(`sample ${of} ${n}`.padEnd(32, '.'));
}
