/** IDs of submissions named on the command line. */
import { SUBMISSION_ID } from '../../protocol/ids.js';
import { UsageError } from '../cli.js';

/** What is wrong with a text that is no ID, behind its name. */
export const NO_SUBMISSION_ID = 'is not a submission ID, as sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T';

/** Whether a text has the form of a submission's ID. */
export function isSubmissionId(text: string): boolean {
  return SUBMISSION_ID.test(text);
}

/** Throws UsageError if a text is no submission's ID, before the service is asked for what cannot exist. */
export function assertSubmissionId(text: string): void {
  if (!isSubmissionId(text)) throw new UsageError(`${text} ${NO_SUBMISSION_ID}`);
}
