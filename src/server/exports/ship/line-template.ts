/** The lines of an exported batch: of each kind one template, made by the renderers of the API's answers. */
import type { LeafParts, SignatureStamps } from '../../../proof/bundle/bundle.js';
import { fromBase64, toBase64, toHex } from '../../../proof/bytes/encoding.js';
import { statementText } from '../../../proof/statement/statement.js';
import { environmentName } from '../../../protocol/environment.js';
import type { LoadedBatch } from '../../attestations/bundles/batch-proofs.js';
import {
  bundleJson,
  recordOf,
  sampleStamps,
  sampleStatement,
} from '../../attestations/bundles/bundle-template.js';
import { leafSha256, textToBase64 } from '../../attestations/leaf-text.js';
import type { ExportedRow } from '../../attestations/submissions/exported-rows.js';
import {
  metadataErrorsText,
  metadataText,
  parseStored,
  type SubmissionView,
  submissionJson,
} from '../../attestations/submissions/submission-message.js';
import { makeTemplate, type TemplateValue, type TextTemplate } from '../../json/template.js';
import { formatMs } from '../../json/well-known-types.js';
import type { Log } from '../../log/store/logs.js';

/** What the lines of a project and batch share. */
type LinesOf = {
  proof: Pick<LoadedBatch, 'batch' | 'prepared' | 'texts'> & { log: Pick<Log, 'environment'> };
  projectId: string;
};

/**
 * A submission to write: its row, its DSSE key (SPKI, DER), and the text of its inclusion proof in each of the batch's
 * checkpoints, see {@link createProofTexts}; empty in a tree of one leaf.
 */
type LineParts<Text = Uint8Array> = SignatureStamps & {
  row: ExportedRow;
  dsseKey: Uint8Array;
  proofs: readonly Text[];
};

/** A line in two parts: what it shares with others of its batch, and its own values. */
export type Line = { template: TextTemplate; values: readonly TemplateValue[] };

/**
 * Renders the lines of a project and batch, `{"submission": …, "bundle": …}`. It takes less than an eighth of what
 * the renderers of the API's answers take.
 */
export function createLineRenderer(lines: LinesOf): (parts: LineParts) => Line {
  const templates = new Map<string, TextTemplate>();
  return (parts) => {
    const kind = kindOf(parts);
    const template = templates.get(kind) ?? makeLineTemplate(lines, parts);
    templates.set(kind, template);
    const submission = parts.row.signed === null ? undefined : submissionOf(lines, parts.row);
    return { template, values: valuesOf(lines, parts, submission) };
  };
}

/** Rows of a kind have lines with the same members, as many stamps, and one DSSE key. */
function kindOf({ row, stamps = [], isStampPending = false }: LineParts): string {
  const members =
    (row.attestedMetadata === null ? 0 : 1) +
    (row.redactedAtMs === null ? 0 : 2) +
    (row.salt === null ? 0 : 4) +
    (row.metadataErrors === null ? 0 : 8);
  const form = row.signed === null ? 0 : typeof row.signed === 'string' ? 1 : 2;
  return `${row.dsseKeyId} ${row.metadataState} ${members} ${form} ${stamps.length} ${isStampPending}`;
}

/**
 * The values of a line as they are spelled in it, empty if lines of its kind have none.
 *
 * @param submission the JSON of a submission whose statement is stored: it is one value, since it may have any members
 */
function valuesOf<Text>(
  lines: LinesOf,
  { row, dsseKey, proofs, stamps = [] }: LineParts<Text>,
  submission: string | undefined,
): (string | Text)[] {
  const signed = signedOf(lines, row);
  const record = recordOf(signed, row.signature, toBase64(dsseKey));
  const isText = typeof signed === 'string';
  return [
    row.id,
    formatMs(row.submittedAtMs),
    row.artifactSha256,
    row.leafSha256,
    leafSha256(record),
    String(row.logIndex),
    isText ? textToBase64(signed) : '',
    row.signature,
    textToBase64(record),
    isText ? '' : signed.erasedAt,
    ...(submission === undefined ? submissionValues(row) : [submission]),
    ...proofs,
    ...stamps,
  ];
}

function submissionValues(row: ExportedRow): string[] {
  return [
    metadataText(row),
    row.attestedMetadata ?? '',
    row.salt ?? '',
    row.redactedAtMs === null ? '' : formatMs(row.redactedAtMs),
    row.metadataErrors === null ? '' : metadataErrorsText(withErrors(row)),
  ];
}

function signedOf(lines: LinesOf, row: ExportedRow): LeafParts['statement'] {
  if (row.signed !== null) return row.signed;
  return statementText({
    ...bundledOf(lines, row),
    project: lines.projectId,
    schema: row.attestedSchema ?? row.schema,
    commitment: row.commitment,
  });
}

function bundledOf({ proof }: LinesOf, row: ExportedRow): LeafParts['submission'] {
  return {
    artifactSha256: row.artifactSha256,
    submissionId: row.id,
    submittedAt: formatMs(row.submittedAtMs),
    environment: environmentName(proof.log.environment),
  };
}

function withErrors(row: ExportedRow) {
  return { ...row, metadataErrors: parseStored<SubmissionErrors>(row.metadataErrors) };
}

type SubmissionErrors = NonNullable<SubmissionView['metadataErrors']>;

type Sample = Required<SignatureStamps> & {
  row: ExportedRow;
  siblings: readonly Uint8Array[];
  submission: string | undefined;
};

function makeLineTemplate(
  lines: LinesOf,
  { row, dsseKey, stamps, isStampPending = false }: LineParts,
): TextTemplate {
  const sample = (n: 1 | 2): Sample => ({
    row: sampleRow(row, n),
    siblings: lines.proof.prepared.checkpoints.map((_, i) => sampleBytes(`sibling ${i}`, n)),
    stamps: sampleStamps(stamps, n),
    isStampPending,
    submission: row.signed === null ? undefined : `{"sample submission":${n}}`,
  });
  return makeTemplate(
    (one) => renderLine(lines, one, dsseKey),
    ({ siblings, submission, ...one }) => {
      const proofs = siblings.map((hash) => `"${toBase64(hash)}"`);
      return valuesOf(lines, { ...one, dsseKey, proofs }, submission);
    },
    [sample(1), sample(2)],
  );
}

/** The line as the API's answers are rendered. */
function renderLine(
  lines: LinesOf,
  { row, siblings, submission, ...stamps }: Sample,
  dsseKey: Uint8Array,
): string {
  const leaf: LeafParts = {
    submission: bundledOf(lines, row),
    statement: signedOf(lines, row),
    signature: fromBase64(row.signature),
    dsseKey,
    logIndex: row.logIndex,
    inclusionProofs: siblings.map((sibling) => [sibling]),
    ...stamps,
  };
  return `{"submission":${submission ?? submissionOf(lines, row)},"bundle":${bundleJson(lines.proof, leaf)}}\n`;
}

/** The submission as the API's answers are rendered. */
function submissionOf({ proof: { log, batch } }: LinesOf, row: ExportedRow): string {
  const { id: batchId, status: batchStatus, witnessedAt } = batch;
  const witnessedAtMs = witnessedAt?.getTime() ?? null;
  const shown = { ...withErrors(row), build: null, batchId, batchStatus, witnessedAtMs };
  return submissionJson(shown, log.environment);
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
    signed: row.signed && sampleStatement(row.signed, n),
  };
}

function sampleBytes(of: string, n: number): Uint8Array {
  return Buffer.from(`sample ${of} ${n}`.padEnd(32, '.'));
}
