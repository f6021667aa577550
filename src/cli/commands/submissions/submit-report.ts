/** Prints the results of `attest submit`. */
import { SubmissionSchema, SubmissionStatusSchema } from '../../../../gen/attestation/v1/attestations_pb.js';
import { AttestationError } from '../../../client/error.js';
import { enumName } from '../../../protocol/enum-names.js';
import { printable } from '../../../protocol/printable.js';
import { compileWriter } from '../../../server/json/codec.js';
import { type Cli, print, printError } from '../../cli.js';
import { errorJson, errorText } from '../../output/report-error.js';
import type { FileResult } from './submit-files.js';

/** Flags that choose what is printed. */
type ReportFlags = { readonly quiet?: boolean; readonly json?: boolean };

type Report = {
  /** Prints a result. Returns whether the files that follow may succeed. */
  add(result: FileResult): boolean;
  /** Prints what is left to say; of how many files, if the command was interrupted. */
  end(interruptedOf: number | undefined): void;
};

/** Starts a report. Failures of further files for a reason that is not one file's are counted, not printed each. */
export function openReport(cli: Cli, flags: ReportFlags): Report {
  let reason: unknown;
  let alike = 0;
  let recorded = 0;
  return {
    add: (result) => {
      const error = 'error' in result ? result.error : undefined;
      if (reason !== undefined && isSameFailure(error, reason) && !flags.json) {
        alike++;
        return false;
      }
      printResult(cli, result, flags);
      if ('submission' in result) recorded++;
      if (error === undefined || affectsOneFile(error)) return true;
      reason ??= error;
      return false;
    },
    end: (interruptedOf) => {
      if (alike > 0) printError(cli, `error: ${alike} more files failed for the same reason`);
      if (interruptedOf !== undefined)
        printError(cli, `interrupted: ${recorded} of ${interruptedOf} files were submitted`);
    },
  };
}

/** Whether the error concerns this file only, so that the others can go on. */
function affectsOneFile(error: unknown): boolean {
  return error instanceof AttestationError ? /^(submission|wait|idempotency)\./.test(error.code) : true;
}

/** Whether an error that does not concern one file only is that of another file. */
function isSameFailure(error: unknown, reason: unknown): boolean {
  if (!(error instanceof AttestationError) || !(reason instanceof AttestationError)) return error === reason;
  return error.code === reason.code && !affectsOneFile(error);
}

const writeSubmission = compileWriter(SubmissionSchema);

function printResult(cli: Cli, outcome: FileResult, { json, quiet }: ReportFlags): void {
  const file = printable(outcome.file);
  if ('error' in outcome) {
    cli.exitCode = 1;
    if (json) print(cli, JSON.stringify({ file: outcome.file, error: errorJson(outcome.error) }));
    printError(cli, `error: ${file}: ${errorText(outcome.error)}`);
    return;
  }
  const { submission } = outcome;
  for (const { message } of submission.warnings) printError(cli, `warning: ${file}: ${printable(message)}`);
  if (json)
    print(cli, `{"file":${JSON.stringify(outcome.file)},"submission":${writeSubmission(submission)}}`);
  else if (quiet) print(cli, submission.id);
  else print(cli, `${submission.id}  ${enumName(SubmissionStatusSchema, submission.status)}  ${file}`);
}
