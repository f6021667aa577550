/** What hashes of requests that create submissions are of. */
import {
  CreateAttestationRequestSchema,
  StatementForm,
  StatementFormSchema,
  ValidationMode,
  ValidationModeSchema,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { jcs } from '../../../proof/bytes/jcs.js';
import { defaultsOf } from '../../json/defaults.js';
import type { PublicParts } from '../statements/check-statement.js';
import type { CheckedSubmission } from './new-submission.js';

const { validation: DEFAULT_VALIDATION } = defaultsOf(CreateAttestationRequestSchema);

/**
 * The JCS of the message that creates a submission, without defaults and of its canonical metadata: what hashes of requests
 * are of. Making the message, and its JCS, takes 8.6 µs longer.
 */
export function creationText(submission: CheckedSubmission, validation: ValidationMode): string {
  const isDefault = validation === DEFAULT_VALIDATION;
  return sentText(submission, isDefault ? ValidationMode.UNSPECIFIED : validation);
}

/** {@link creationText}, and the text as sent if that names a default. */
export function creationTexts(submission: CheckedSubmission, validation: ValidationMode): string[] {
  const text = creationText(submission, validation);
  return validation === DEFAULT_VALIDATION ? [text, sentText(submission, validation)] : [text];
}

function sentText(
  { artifactSha256, artifactName, metadata, build, publicParts }: CheckedSubmission,
  validation: ValidationMode,
): string {
  const quote = JSON.stringify;
  const name = artifactName === undefined ? '' : `"name":${quote(artifactName)},`;
  const ofBuild = build === null ? '' : `,"build":${quote(build)}`;
  const ofStatement = publicParts === undefined ? '' : publicText(publicParts);
  const mode =
    validation === ValidationMode.UNSPECIFIED
      ? ''
      : `,"validation":${quote(ValidationModeSchema.value[validation]?.name)}`;
  return `{"artifact":{${name}"sha256":"${artifactSha256}"}${ofBuild},"metadata":${metadata}${ofStatement}${mode}}`;
}

function publicText({ subjects }: PublicParts): string {
  const form = JSON.stringify(StatementFormSchema.value[StatementForm.PUBLIC]?.name);
  return `,"statement":${form}${subjects.length === 0 ? '' : `,"subjects":${jcs(subjects)}`}`;
}
