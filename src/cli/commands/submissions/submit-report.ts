/** Prints the results of `attest submit`. */

import {
  type Submission,
  SubmissionSchema,
  SubmissionStatusSchema,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { AttestationError } from '../../../client/error.js';
import { count } from '../../../proof/export/object-check.js';
import { enumName } from '../../../protocol/enum-names.js';
import { printable } from '../../../protocol/printable.js';
import { compileWriter } from '../../../server/json/codec.js';
import { type Cli, print, printError } from '../../cli.js';
import { type Pushed, pushedText } from '../../oci/images.js';
import { errorJson, errorText } from '../../output/report-error.js';
import { type Build, continuation } from '../../submit/build.js';

/** The submission of a file, why there is none, or what went wrong after it was made. */
type FileResult = {
  readonly file: string;
  readonly submission?: Submission;
  readonly error?: unknown;
  /** Where its bundle is. */
  readonly bundleFile?: string;
  /** What its bundle is attached to. */
  readonly pushed?: Pushed;
};

/** Flags that choose what is printed. */
type ReportFlags = { readonly quiet?: boolean; readonly json?: boolean };

type Report = {
  /** Prints a result. Returns whether the files that follow may succeed. */
  add(result: FileResult): boolean;
  /** Prints what is left to say. */
  end(end: End): void;
};

type End = {
  /** How many files there are. */
  readonly files: number;
  readonly isInterrupted: boolean;
  readonly build: Build;
  /** The folder of bundles, and how many of them were there. */
  readonly bundles: string | undefined;
  readonly kept: number;
};

/** Starts a report. Failures of further files for a reason that is not one file's are counted, not printed each. */
export function openReport(cli: Cli, flags: ReportFlags): Report {
  let reason: unknown;
  let alike = 0;
  let recorded = 0;
  let written = 0;
  return {
    add: (result) => {
      const { error } = result;
      const isAlike = reason !== undefined && isSameFailure(error, reason);
      if (isAlike && result.submission === undefined && !flags.json) {
        alike++;
        return false;
      }
      printResult(cli, result, flags);
      if (result.submission !== undefined) recorded++;
      if (result.bundleFile !== undefined) written++;
      if (error === undefined || affectsOneFile(error)) return true;
      reason ??= error;
      return false;
    },
    end: ({ files, isInterrupted, build, bundles, kept }) => {
      if (alike > 0) printError(cli, `error: ${count(alike, 'more file')} failed for the same reason`);
      if (bundles !== undefined) {
        const before = kept === 0 ? '' : `, ${kept} were there`;
        printError(cli, `wrote ${count(written - kept, 'bundle')} to ${printable(bundles)}${before}`);
      }
      if (!isInterrupted && reason === undefined) return;
      const what = isInterrupted ? 'interrupted' : 'stopped';
      if (isInterrupted || files > 1)
        printError(cli, `${what}: ${recorded} of ${files} files were submitted`);
      printError(cli, continuation(cli, build));
    },
  };
}

/** Whether the error concerns this file only, so that the others can go on. */
export function affectsOneFile(error: unknown): boolean {
  return error instanceof AttestationError ? /^(submission|wait|idempotency)\./.test(error.code) : true;
}

/** Whether an error that does not concern one file only is that of another file. */
function isSameFailure(error: unknown, reason: unknown): boolean {
  if (!(error instanceof AttestationError) || !(reason instanceof AttestationError)) return error === reason;
  return error.code === reason.code && !affectsOneFile(error);
}

const writeSubmission = compileWriter(SubmissionSchema);

function printResult(cli: Cli, result: FileResult, flags: ReportFlags): void {
  const { file, submission, error } = result;
  const label = printable(file);
  for (const { message } of submission?.warnings ?? []) {
    printError(cli, `warning: ${label}: ${printable(message)}`);
  }
  if (flags.json) print(cli, resultJson(result));
  else if (submission !== undefined && flags.quiet) print(cli, submission.id);
  else if (submission !== undefined) {
    print(cli, `${submission.id}  ${enumName(SubmissionStatusSchema, submission.status)}  ${label}`);
  }
  if (result.pushed !== undefined && !flags.json)
    printError(cli, `${submission?.id} ${pushedText(result.pushed)}`);
  if (error === undefined) return;
  cli.exitCode = 1;
  printError(cli, `error: ${label}: ${errorText(error)}`);
}

function resultJson({ file, submission, error, bundleFile, pushed }: FileResult): string {
  const members = {
    file,
    ...(bundleFile !== undefined && { bundle_file: bundleFile }),
    ...(pushed && { referrer: pushed.referrer, was_there: pushed.wasThere }),
    ...(error !== undefined && { error: errorJson(error) }),
  };
  const text = JSON.stringify(members);
  return submission === undefined
    ? text
    : `${text.slice(0, -1)},"submission":${writeSubmission(submission)}}`;
}
