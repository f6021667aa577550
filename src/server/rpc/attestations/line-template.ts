/** The lines of an exported batch: of each kind one template, made by the renderers of the API's answers. */
import { hash } from 'node:crypto';
import type { LeafParts } from '../../../proof/bundle/bundle.js';
import { fromBase64, toBase64, toHex } from '../../../proof/bytes/encoding.js';
import { type StatementFields, statementText } from '../../../proof/statement/statement.js';
import { environmentName } from '../../../protocol/environment.js';
import { makeTemplate, type TextTemplate } from '../../json/template.js';
import type { Log } from '../../store/log/logs.js';
import type { ExportedRow } from '../../store/submissions/exported-rows.js';
import type { LoadedBatch } from './batch-proofs.js';
import { bundleJson } from './bundle-template.js';
import { leafRecordOf } from './leaf-text.js';
import {
  metadataErrorsText,
  metadataText,
  parseStored,
  type SubmissionView,
  submissionJson,
} from './submission-message.js';

/** What the lines of a project and batch share. */
type LinesOf = {
  proof: Pick<LoadedBatch, 'batch' | 'prepared' | 'texts'> & { log: Pick<Log, 'environment'> };
  projectId: string;
};

/**
 * A submission to write: its row, its DSSE key (SPKI, DER), and the text of its inclusion proof in each of the batch's
 * checkpoints, see {@link proofText}; empty in a tree of one leaf.
 */
type LineParts = { row: ExportedRow; dsseKey: Uint8Array; proofs: readonly string[] };

/** A line in two parts: what it shares with others of its batch, and its own values. */
export type Line = { template: TextTemplate; values: readonly string[] };

type Kind = { template: TextTemplate; publicKey: string };

/**
 * Renders the lines of a project and batch, `{"submission": …, "bundle": …}`. A line and its inclusion proof take 12 µs, by
 * the renderers of the API's answers 105 µs.
 */
export function createLineRenderer(lines: LinesOf): (parts: LineParts) => Line {
  const kinds = new Map<string, Kind>();
  return (parts) => {
    const name = kindOf(parts.row);
    let kind = kinds.get(name);
    if (kind === undefined) {
      kind = { template: makeLineTemplate(lines, parts), publicKey: toBase64(parts.dsseKey) };
      kinds.set(name, kind);
    }
    return { template: kind.template, values: valuesOf(lines, parts, kind.publicKey) };
  };
}

/** Puts a hash in front of those above it in a proof, as the elements of a JSON array. */
export function proofText(sibling: Uint8Array, above: string | undefined): string {
  return above === undefined ? `"${toBase64(sibling)}"` : `"${toBase64(sibling)}",${above}`;
}

/** Rows of a kind have lines with the same members, and one DSSE key. */
function kindOf(row: ExportedRow): string {
  const corrected = row.attestedMetadata === null ? '' : 'corrected';
  const redacted = row.redactedAtMs === null ? '' : 'redacted';
  const salted = row.salt === null ? '' : 'salted';
  const faulty = row.metadataErrors === null ? '' : 'faulty';
  return `${row.dsseKeyId} ${row.metadataState} ${corrected} ${redacted} ${salted} ${faulty}`;
}

/** The values of a line as they are spelled in it, empty if lines of its kind have none. */
function valuesOf(lines: LinesOf, { row, proofs }: Omit<LineParts, 'dsseKey'>, publicKey: string): string[] {
  const fields = statementOf(lines, row);
  const statement = statementText(fields);
  const record = leafRecordOf(statement, row.signature, publicKey);
  return [
    row.id,
    fields.submittedAt,
    row.artifactSha256,
    row.leafSha256,
    hash('sha256', `\0${record}`, 'hex'),
    String(row.logIndex),
    Buffer.from(statement).toString('base64'),
    row.signature,
    Buffer.from(record).toString('base64'),
    metadataText(row),
    row.attestedMetadata ?? '',
    row.salt ?? '',
    row.redactedAtMs === null ? '' : new Date(row.redactedAtMs).toISOString(),
    row.metadataErrors === null ? '' : metadataErrorsText(withErrors(row)),
    ...proofs,
  ];
}

function statementOf({ proof, projectId }: LinesOf, row: ExportedRow): StatementFields {
  return {
    artifactSha256: row.artifactSha256,
    submissionId: row.id,
    project: projectId,
    submittedAt: new Date(row.submittedAtMs).toISOString(),
    environment: environmentName(proof.log.environment),
    schema: row.attestedSchema ?? row.schema,
    commitment: row.commitment,
  };
}

function withErrors(row: ExportedRow) {
  return { ...row, metadataErrors: parseStored<SubmissionErrors>(row.metadataErrors) };
}

type SubmissionErrors = NonNullable<SubmissionView['metadataErrors']>;

type Sample = { row: ExportedRow; siblings: readonly Uint8Array[] };

function makeLineTemplate(lines: LinesOf, { row, dsseKey }: LineParts): TextTemplate {
  const sample = (n: 1 | 2): Sample => ({
    row: sampleRow(row, n),
    siblings: lines.proof.prepared.checkpoints.map((_, i) => sampleBytes(`sibling ${i}`, n)),
  });
  const publicKey = toBase64(dsseKey);
  return makeTemplate(
    (one) => renderLine(lines, one, dsseKey),
    ({ siblings, ...one }) =>
      valuesOf(lines, { ...one, proofs: siblings.map((hash) => proofText(hash, undefined)) }, publicKey),
    [sample(1), sample(2)],
  );
}

/** The line as the API's answers are rendered. */
function renderLine(lines: LinesOf, { row, siblings }: Sample, dsseKey: Uint8Array): string {
  const { log, batch } = lines.proof;
  const { id: batchId, status: batchStatus, witnessedAt } = batch;
  const shown = { ...withErrors(row), batchId, batchStatus, witnessedAtMs: witnessedAt?.getTime() ?? null };
  const leaf: LeafParts = {
    statement: statementOf(lines, row),
    signature: fromBase64(row.signature),
    dsseKey,
    logIndex: row.logIndex,
    inclusionProofs: siblings.map((sibling) => [sibling]),
  };
  return `{"submission":${submissionJson(shown, log.environment)},"bundle":${bundleJson(lines.proof, leaf)}}\n`;
}

/** A row of the same kind, whose values are in no other line. */
function sampleRow(row: ExportedRow, n: 1 | 2): ExportedRow {
  return {
    ...row,
    id: `sample id ${n}`,
    submittedAtMs: Date.UTC(9000, 0, n),
    artifactSha256: toHex(sampleBytes('artifact', n)),
    leafSha256: toHex(sampleBytes('leaf', n)),
    logIndex: Number.MAX_SAFE_INTEGER - n,
    signature: toBase64(sampleBytes('signature', n)),
    metadata: `{"sample metadata":${n}}`,
    attestedMetadata: row.attestedMetadata && `{"sample attested metadata":${n}}`,
    salt: row.salt && toHex(sampleBytes('salt', n)),
    redactedAtMs: row.redactedAtMs === null ? null : Date.UTC(9001, 0, n),
    metadataErrors: row.metadataErrors && `[{"path":"/sample","message":"${n}"}]`,
  };
}

function sampleBytes(of: string, n: number): Uint8Array {
  return Buffer.from(`sample ${of} ${n}`.padEnd(32, '.'));
}
