/** Makes the statements of new submissions, and what is stored of those that are more than the row. */
import { hash } from 'node:crypto';
import { MAX_PUBLIC_STATEMENT_BYTES, publicTextOf } from '../../../proof/statement/public-statement.js';
import type { StatedSubmission } from '../../../proof/statement/stated-submission.js';
import { statementText } from '../../../proof/statement/statement.js';
import { invalidRequest } from '../../json/problems.js';
import { signedText } from '../leaf-text.js';
import type { PublicParts } from './check-statement.js';
import { type NewStatement, StatementVersion } from './stored-statement.js';

/** The text to sign, and what is stored of it; null if it is made of the row. */
export type MadeStatement = { text: string; stored: NewStatement | null };

/** Makes a private statement. `schema` and `commitment` are of the metadata. */
export function makePrivateStatement(
  submission: StatedSubmission,
  { schema, commitment }: { schema: string; commitment: string },
): MadeStatement {
  const text = statementText({ ...submission, schema, commitment });
  const { artifactName: name, identity } = submission;
  if (name === undefined && identity === undefined) return { text, stored: null };
  const shown = { name, identity };
  return {
    text,
    stored: { version: StatementVersion.PRIVATE, text, digest: digestOf(text), shown, subjects: [] },
  };
}

/** Makes a public statement. */
export function makePublicStatement(submission: StatedSubmission, parts: PublicParts): MadeStatement {
  const text = textOf(submission, parts);
  const { artifactName: name, identity } = submission;
  const shown = { name, identity, subjects: parts.subjects.length };
  const subjects = parts.subjects.map(({ sha256 }) => sha256);
  return {
    text,
    stored: { version: StatementVersion.PUBLIC, text, digest: digestOf(text), shown, subjects },
  };
}

function textOf(submission: StatedSubmission, { predicateType, predicate, subjects }: PublicParts): string {
  return publicTextOf({ ...submission, predicateType, otherSubjects: subjects }, predicate);
}

/** SHA-256 of what is signed, in hex. */
function digestOf(text: string): string {
  return hash('sha256', signedText(text), 'hex');
}

/** No subject has more characters, and nothing else but the predicate and the subjects. */
const SUBJECT_LENGTH = 1_200;
const OTHER_LENGTH = 16 * 1024;
/** A UTF-16 code unit takes three bytes of UTF-8 at most. */
const CERTAINLY_FITS = MAX_PUBLIC_STATEMENT_BYTES / 3;

/**
 * Throws `request.invalid` if a public statement is too long. Makes it to measure it, unless it is certainly short enough by
 * the length of its metadata.
 */
export function assertFits(submission: StatedSubmission, parts: PublicParts, metadataLength: number): void {
  const length = metadataLength + parts.subjects.length * SUBJECT_LENGTH + OTHER_LENGTH;
  if (length <= CERTAINLY_FITS) return;
  const bytes = Buffer.byteLength(textOf(submission, parts));
  if (bytes <= MAX_PUBLIC_STATEMENT_BYTES) return;
  const message = `would be ${bytes} bytes long with this metadata and these subjects; a public statement has at most ${MAX_PUBLIC_STATEMENT_BYTES}`;
  throw invalidRequest([{ path: '/statement', message }]);
}
