/** The lines of an exported batch: of each kind one template, made by the renderers of the API's answers. */
import { toBase64, toHex } from '../../../proof/bytes/encoding.js';
import { rebuildLeaf } from '../../../proof/statement/leaf.js';
import { statementBytes } from '../../../proof/statement/statement.js';
import { makeTemplate, type TextTemplate } from '../../json/template.js';
import type { LeafRow } from '../../store/submissions/submissions.js';
import type { BatchProof } from './batch-proofs.js';
import { type BundledLeaf, type BundleParts, bundleJson, statementOf } from './bundles.js';
import { metadataErrorsText, metadataText, submissionJson, submissionView } from './submission-message.js';

/** What the lines of a batch share. */
type BatchOfLines = BundleParts & Pick<BatchProof, 'batch'>;

/**
 * A leaf to write: its row, its DSSE key (SPKI, DER), and the text of its inclusion proof in each of the batch's
 * checkpoints, see {@link proofText}; empty in a tree of one leaf.
 */
type LineLeaf = Omit<BundledLeaf, 'inclusionProofs'> & { proofs: readonly string[] };

/** A line in two parts: what it shares with others of its batch, and its own values. */
export type Line = { template: TextTemplate; values: readonly string[] };

/**
 * Renders the lines of a batch, `{"submission": …, "bundle": …}`: 25 µs a line, where the renderers of the API's answers take 110 µs.
 */
export function createLineRenderer(batch: BatchOfLines): (leaf: LineLeaf) => Line {
  const templates = new Map<string, TextTemplate>();
  const { environment } = batch.log;
  return (leaf) => {
    const kind = kindOf(leaf.row);
    let template = templates.get(kind);
    if (template === undefined) {
      template = makeLineTemplate(batch, leaf);
      templates.set(kind, template);
    }
    return { template, values: valuesOf(leaf, environment) };
  };
}

/** Puts a hash in front of those above it in a proof, as the elements of a JSON array. */
export function proofText(sibling: Uint8Array, above: string | undefined): string {
  return above === undefined ? `"${toBase64(sibling)}"` : `"${toBase64(sibling)}",${above}`;
}

/** Rows of a kind have lines with the same members. */
function kindOf({ dsseKeyId, metadataState, metadataErrors, ...row }: LeafRow): string {
  const { attestedMetadata, salt, redactedAt } = row;
  const absent = [attestedMetadata, salt, redactedAt, metadataErrors].map((value) => value === null);
  return `${dsseKeyId} ${metadataState} ${absent.join()}`;
}

/** The values of a line as they are spelled in it, empty if lines of its kind have none. */
function valuesOf({ row, dsseKey, proofs }: LineLeaf, environment: number): string[] {
  const statement = statementBytes(statementOf(row, environment));
  const { record, hash } = rebuildLeaf(statement, row.signature, dsseKey);
  return [
    row.id,
    row.submittedAt.toISOString(),
    toHex(row.artifactSha256),
    toHex(row.leafHash),
    toHex(hash),
    String(row.logIndex),
    toBase64(statement),
    toBase64(row.signature),
    toBase64(record),
    metadataText(row),
    row.attestedMetadata ?? '',
    row.salt === null ? '' : toHex(row.salt),
    row.redactedAt?.toISOString() ?? '',
    row.metadataErrors === null ? '' : metadataErrorsText(row),
    ...proofs,
  ];
}

function makeLineTemplate(batch: BatchOfLines, { row, dsseKey }: LineLeaf): TextTemplate {
  const sample = (n: 1 | 2): BundledLeaf => ({
    row: sampleRow(row, n),
    dsseKey,
    inclusionProofs: batch.prepared.checkpoints.map((_, i) => [sampleBytes(`sibling ${i}`, n)]),
  });
  return makeTemplate(
    (leaf) => renderLine(batch, leaf),
    ({ inclusionProofs, ...leaf }) => {
      const proofs = inclusionProofs.map(([sibling]) => (sibling ? proofText(sibling, undefined) : ''));
      return valuesOf({ ...leaf, proofs }, batch.log.environment);
    },
    [sample(1), sample(2)],
  );
}

function renderLine(shared: BatchOfLines, leaf: BundledLeaf): string {
  const { log, batch } = shared;
  const { id: batchId, status: batchStatus, witnessedAt } = batch;
  const view = submissionView({ ...leaf.row, batchId, batchStatus, witnessedAt });
  return `{"submission":${submissionJson(view, log.environment)},"bundle":${bundleJson(shared, leaf)}}\n`;
}

/** A row of the same kind, whose values are in no other line. */
function sampleRow(row: LeafRow, n: 1 | 2): LeafRow {
  return {
    ...row,
    id: `sample id ${n}`,
    submittedAt: new Date(Date.UTC(9000, 0, n)),
    artifactSha256: sampleBytes('artifact', n),
    leafHash: sampleBytes('leaf', n),
    logIndex: Number.MAX_SAFE_INTEGER - n,
    signature: sampleBytes('signature', n),
    metadata: `{"sample metadata":${n}}`,
    attestedMetadata: row.attestedMetadata && `{"sample attested metadata":${n}}`,
    salt: row.salt && sampleBytes('salt', n),
    redactedAt: row.redactedAt && new Date(Date.UTC(9001, 0, n)),
    metadataErrors: row.metadataErrors && `[{"path":"/sample","message":"${n}"}]`,
  };
}

function sampleBytes(of: string, n: number): Uint8Array {
  return Buffer.from(`sample ${of} ${n}`.padEnd(32, '.'));
}
