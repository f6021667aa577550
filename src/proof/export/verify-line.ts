/** Verification of one line of an exported object, `{"submission": …, "bundle": …}`. */
import type { Submission } from '../../../gen/attestation/v1/attestations_pb.js';
import { withoutByteOrderMark } from '../../protocol/byte-order-mark.js';
import { printablePointerStep } from '../../protocol/json-pointer.js';
import { MAX_PROBLEMS } from '../../protocol/problem.js';
import { fromUtf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { parseJsonText } from '../verify/read/json-text.js';
import type { ParsedBundle } from '../verify/read/parsed-bundle.js';
import { readBundle } from '../verify/read/read-bundle.js';
import type { Check } from '../verify/report.js';
import type { IdentityAsked } from '../verify/steps/identity-checks.js';
import {
  createBundleVerifier,
  type TrustOptions,
  type Verdict,
  type Verification,
} from '../verify/verify.js';
import { attestedMetadata, checkAgreement, checkSubmission, readSubmission } from './submission-step.js';

/** Maximum length of a line, in bytes. */
export const MAX_LINE_BYTES = 1024 * 1024;

/** Inputs of the check of lines: those of bundles, and who must have submitted. */
export type LineOptions = TrustOptions & IdentityAsked & { readonly project?: string | undefined };

/** A line's stated place. Proven only if the verdict is `verified`; the batch's bounds are never proven. */
export type LineFacts = {
  readonly submissionId: string;
  readonly project: string;
  readonly batchId: string;
  /** The log's origin. */
  readonly log: string;
  readonly logIndex: number;
  readonly firstIndex: number;
  readonly treeSize: number;
  /** The metadata's schema, as corrected if it was. */
  readonly schema: string;
  /** Whether the line is of an archive, whose objects have the submissions of all projects. */
  readonly isArchived?: boolean;
};

export type LineVerification = {
  readonly verdict: Verdict;
  /** Why it is not verified; empty if it is. */
  readonly reason: string;
  /** The earliest time that a trusted witness attests, if the line is verified. */
  readonly existedBy?: Date;
  /** JSON pointers to members of the line that this version does not know: nothing is claimed from them. */
  readonly ignored?: readonly string[];
  /** Undefined if bundle or statement cannot be read. */
  readonly facts?: LineFacts;
};

/** Verifies a line without its newline. Never throws. */
export type LineVerifier = (line: Uint8Array) => Promise<LineVerification>;

/** Creates a verifier of the lines of any objects. Lines of the same batch in a row are verified much faster. */
export function createLineVerifier(options: LineOptions): LineVerifier {
  const verifyBundle = createBundleVerifier(options);
  const { project, issuer, identity } = options;
  const verify = async (bytes: Uint8Array): Promise<LineVerification> => {
    const { text, submission: json, bundle, others, isArchived } = parseLine(bytes);
    const read = readSubmission(json);
    const submission = 'submission' in read ? read.submission : undefined;
    const parts = readBundle(bundle);
    const verification = await verifyBundle(parts, { ...askedOf(submission), project, issuer, identity });
    const checks = 'checks' in read ? read.checks : checkSubmission(read.submission, text);
    const { parsed } = parts;
    const { statement } = verification;
    if (parsed === undefined || statement === undefined) return conclude(verification, checks);
    if (submission !== undefined) checks.push(...checkAgreement(submission, parsed, statement));
    const ignored = [
      ...others,
      ...('ignored' in read ? read.ignored : []),
      ...parsed.ignored.map((path) => `/bundle${path}`),
    ];
    const facts = { ...factsOf(verification, parsed, submission), ...(isArchived && { isArchived }) };
    return { ...conclude(verification, checks), facts, ...(ignored.length > 0 && { ignored }) };
  };
  return async (line) => {
    try {
      return await verify(line);
    } catch (error) {
      if (error instanceof FormatError)
        return { verdict: 'not_verified', reason: `the line ${error.message}` };
      return { verdict: 'could_not_check', reason: 'the verification itself failed' };
    }
  };
}

function parseLine(bytes: Uint8Array): {
  text: string;
  submission: unknown;
  bundle: unknown;
  others: string[];
  isArchived: boolean;
} {
  if (bytes.length > MAX_LINE_BYTES) throw new FormatError('is longer than 1 MiB');
  const text = withoutByteOrderMark(decode(bytes));
  if (text.endsWith('\r')) throw new FormatError('ends with CR LF instead of LF');
  const value = parseJsonText(text, MAX_LINE_BYTES);
  if (!text.startsWith('{') || !text.endsWith('}')) throw new FormatError('is not one JSON object');
  // What puts an archived row back; its metadata is the submission's, and nothing is claimed from the rest.
  const { submission, bundle, row, batch: _, ...others } = value as Record<string, unknown>;
  if (submission === undefined || bundle === undefined) {
    throw new FormatError('has no submission or no bundle');
  }
  const names = Object.keys(others).slice(0, MAX_PROBLEMS);
  const unknown = names.map((name) => `/${printablePointerStep(name)}`);
  return { text, submission, bundle, others: unknown, isArchived: row !== undefined };
}

function decode(bytes: Uint8Array): string {
  try {
    return fromUtf8(bytes);
  } catch {
    throw new FormatError('is not text in UTF-8');
  }
}

/** The submission's own artifact and metadata: the bundle must be about them. */
function askedOf(submission: Submission | undefined) {
  if (submission === undefined) return {};
  const metadata = attestedMetadata(submission);
  return {
    artifactSha256: submission.artifact?.sha256,
    ...(metadata !== undefined && { metadata, metadataSalt: submission.metadataSalt }),
  };
}

function conclude(verification: Verification, checks: readonly Check[]): LineVerification {
  const { verdict, existedBy } = verification;
  if (checks.some(({ status }) => status === 'failed') || verdict === 'not_verified') {
    return {
      verdict: 'not_verified',
      reason: reasonOf(verification, checks, ({ status }) => status === 'failed'),
    };
  }
  if (verdict !== 'verified') {
    return { verdict, reason: reasonOf(verification, [], ({ blocking }) => blocking === true) };
  }
  return { verdict, reason: '', ...(existedBy !== undefined && { existedBy }) };
}

/** The messages of the deciding checks of submission and bundle. */
function reasonOf(
  { steps }: Verification,
  checks: readonly Check[],
  isDeciding: (check: Check) => boolean,
): string {
  const all = [...checks, ...steps.flatMap((step) => step.checks)];
  return [...new Set(all.filter(isDeciding).map(({ message }) => message))].join('; ');
}

function factsOf(
  { statement }: Verification,
  { batch, entry, checkpoints: [first] }: ParsedBundle,
  submission: Submission | undefined,
): Omit<LineFacts, 'isArchived'> {
  const schema = submission?.metadata?.schema;
  return {
    submissionId: statement?.submissionId ?? '',
    project: statement?.project ?? '',
    batchId: batch.id,
    log: first?.origin ?? '',
    logIndex: entry.logIndex,
    firstIndex: Number(batch.firstIndex),
    treeSize: Number(batch.treeSize),
    schema: typeof schema === 'string' ? schema : '',
  };
}
