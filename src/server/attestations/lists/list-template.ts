/** Lists of submissions as JSON: of each kind of submission one template, made by the renderer of their messages. */
import type { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { joinTemplate, makeTemplate, type TextTemplate } from '../../json/template.js';
import { formatMs } from '../../json/well-known-types.js';
import {
  metadataErrorsText,
  metadataText,
  type SubmissionView,
  submissionJson,
  submissionStatus,
  visibleErrors,
} from '../submissions/submission-message.js';

/** Renders submissions as a JSON list, each as `submissionJson` does. */
export type RenderList = (rows: readonly SubmissionView[], environment: Environment) => string;

/**
 * Creates the renderer, which keeps templates for submissions whose statement is made of the row: 50 submissions take 24 µs, by their messages 250. Concatenates with `+`:
 * for 200 submissions of 60 KiB, Array.join takes 16 ms longer, since it copies once more.
 */
export function createListRenderer(): RenderList {
  /** By kind: there are a few hundred, of which most services have ten. */
  const templates = new Map<number, TextTemplate>();
  const render = (shown: SubmissionView, environment: Environment) => {
    if (shown.statement !== null) return submissionJson(shown, environment);
    const kind = kindOf(shown, environment);
    const template = templates.get(kind) ?? makeSubmissionTemplate(shown, environment);
    templates.set(kind, template);
    return joinTemplate(template, valuesOf(shown));
  };
  return (rows, environment) => {
    let items = '';
    for (const shown of rows) items += `${items === '' ? '' : ','}${render(shown, environment)}`;
    return `[${items}]`;
  };
}

/** Submissions of a kind have the same members. */
function kindOf(shown: SubmissionView, environment: Environment): number {
  const kind = (environment * 16 + submissionStatus(shown)) * 16 + shown.metadataState;
  return (
    kind * 128 +
    (shown.build !== null ? 64 : 0) +
    (shown.batchId !== null ? 32 : 0) +
    (shown.witnessedAtMs !== null ? 16 : 0) +
    (shown.attestedMetadata !== null ? 8 : 0) +
    (shown.salt !== null ? 4 : 0) +
    (shown.redactedAtMs !== null ? 2 : 0) +
    (visibleErrors(shown).length > 0 ? 1 : 0)
  );
}

/** The values of a submission as they are spelled, empty if those of its kind have none. */
function valuesOf(shown: SubmissionView): string[] {
  return [
    shown.id,
    formatMs(shown.submittedAtMs),
    shown.artifactSha256,
    shown.leafSha256,
    String(shown.logIndex),
    metadataText(shown),
    shown.attestedMetadata ?? '',
    shown.salt ?? '',
    timeText(shown.redactedAtMs),
    visibleErrors(shown).length > 0 ? metadataErrorsText(shown) : '',
    shown.batchId ?? '',
    timeText(shown.witnessedAtMs),
    shown.build === null ? '' : JSON.stringify(shown.build),
  ];
}

function timeText(ms: number | null): string {
  return ms === null ? '' : formatMs(ms);
}

function makeSubmissionTemplate(shown: SubmissionView, environment: Environment): TextTemplate {
  return makeTemplate<1 | 2>(
    (n) => submissionJson(sampleOf(shown, n), environment),
    (n) => valuesOf(sampleOf(shown, n)),
    [1, 2],
  );
}

/** A submission of the same kind, whose values are in no other. */
function sampleOf(shown: SubmissionView, n: 1 | 2): SubmissionView {
  return {
    ...shown,
    id: `sample id ${n}`,
    submittedAtMs: Date.UTC(9000, 0, n),
    artifactSha256: `sample artifact ${n}`,
    leafSha256: `sample leaf ${n}`,
    logIndex: Number.MAX_SAFE_INTEGER - n,
    metadata: `{"sample metadata":${n}}`,
    batchId: shown.batchId && `sample batch ${n}`,
    witnessedAtMs: shown.witnessedAtMs && Date.UTC(9001, 0, n),
    attestedMetadata: shown.attestedMetadata && `{"sample attested metadata":${n}}`,
    salt: shown.salt && `sample salt ${n}`,
    redactedAtMs: shown.redactedAtMs && Date.UTC(9002, 0, n),
    build: shown.build && `sample build ${n}`,
    metadataErrors: visibleErrors(shown).length > 0 ? [{ path: '/sample', message: `error ${n}` }] : null,
  };
}
