/**
 * Verification of a stock Sigstore bundle v0.3 signed by a public key, in named steps, each of which is reported. Pure:
 * key, artifact and trusted root are parameters, and nothing in the bundle is trusted.
 */

import type { PublicKey } from '../asn1/public-key.js';
import { FormatError } from '../bytes/format-error.js';
import { instantText } from '../verify/instant.js';
import { type Check, failed, missing, notChecked, passed, type Step, step } from '../verify/report.js';
import type { Verdict } from '../verify/verify.js';
import { type Artifact, checkArtifact, checkSignature, signedBytes } from './artifact-steps.js';
import { type ParsedSigstoreBundle, parseSigstoreBundle, UncheckableError } from './bundle.js';
import { checkEntries, checkInclusions, checkLogs, checkLogTimes, type LogFinding } from './log-steps.js';
import { checkTimestamps } from './timestamp-step.js';
import type { SigstoreTrust } from './trusted-root.js';

/** The steps in order. */
const SIGSTORE_STEPS = [
  'shape',
  'signature',
  'artifact',
  'entries',
  'inclusion',
  'checkpoint',
  'timestamps',
] as const;

type StepName = (typeof SIGSTORE_STEPS)[number];

type SigstoreOptions = {
  readonly key: PublicKey;
  readonly artifact: Artifact;
  /** Logs and time stamps are `not_checked` if it is missing. */
  readonly trust?: SigstoreTrust | undefined;
  /** Whether a time stamp by an authority of the trusted root is required. False by default: a key needs none. */
  readonly wantsTimestamp?: boolean | undefined;
};

export type SigstoreVerification = {
  /** `verified` means that signature and artifact are valid and no other check failed. */
  readonly verdict: Verdict;
  /** One sentence for people, and one about what was not checked. */
  readonly summary: string;
  readonly steps: readonly Step<StepName>[];
  /**
   * The earliest time that a trusted log or authority attests, its accuracy included. Proven only if the verdict is
   * `verified`.
   */
  readonly existedBy?: Date;
};

/** Verifies a bundle, given as JSON text or UTF-8 bytes. The result lists every problem. */
export async function verifySigstoreBundle(
  bundle: string | Uint8Array,
  options: SigstoreOptions,
): Promise<SigstoreVerification> {
  try {
    return await verifyParsedBundle(parseSigstoreBundle(bundle), options);
  } catch (error) {
    return report([step('shape', [refusalOf(error)])], {});
  }
}

/** The check of a bundle that cannot be parsed. Rethrows other errors. */
function refusalOf(error: unknown): Check {
  if (error instanceof UncheckableError) return missing('shape.not_checkable', error.message);
  if (!(error instanceof FormatError)) throw error;
  return failed('shape.invalid', `the bundle cannot be read: ${error.message}`);
}

async function verifyParsedBundle(
  parsed: ParsedSigstoreBundle,
  { key, artifact, trust, wantsTimestamp = false }: SigstoreOptions,
): Promise<SigstoreVerification> {
  const { content, entries } = parsed;
  const signed = signedBytes(content, artifact);
  const payload = content.kind === 'dsse' ? content.payload : undefined;
  const logs = await checkLogs(entries, trust);
  const stamps = await checkTimestamps(parsed, trust, wantsTimestamp);
  const vouched = [...logs, ...stamps];
  const stated = vouched.flatMap((finding) => finding.stated ?? []);
  const latest = vouched.flatMap((finding) => finding.latest?.getTime() ?? []);
  const about = { ...signed, payload, signature: content.signature, spki: key.spki };
  const steps = [
    step('shape', [
      passed('shape.valid', 'the bundle is well-formed'),
      ...parsed.ignored.map((path) =>
        notChecked('shape.unknown_member', `${path} is not known to this version and is ignored`),
      ),
    ]),
    step('signature', [await checkSignature(content, signed.signed, key)]),
    step('artifact', [checkArtifact(content, artifact)]),
    step('entries', await checkEntries(entries, about)),
    step('inclusion', checkInclusions(entries)),
    step('checkpoint', [...logs.map(({ check }) => check), ...checkLogTimes(logs, stated)]),
    step(
      'timestamps',
      stamps.map(({ check }) => check),
    ),
  ];
  return report(steps, { logs, ...(latest.length > 0 && { existedBy: new Date(Math.min(...latest)) }) });
}

/** Completes the report: steps that were not reached are `not_checked`. */
function report(
  made: readonly Step<StepName>[],
  found: { readonly logs?: readonly LogFinding[]; readonly existedBy?: Date },
): SigstoreVerification {
  const notMade = (name: StepName) =>
    step(name, [missing(`${name}.not_checked`, 'the bundle cannot be read')]);
  const steps = SIGSTORE_STEPS.map((name) => made.find((one) => one.name === name) ?? notMade(name));
  const verdict = verdictOf(steps);
  const { existedBy, logs = [] } = found;
  return {
    verdict,
    summary: summarize(verdict, steps, logs, existedBy),
    steps,
    ...(existedBy && { existedBy }),
  };
}

function verdictOf(steps: readonly Step<StepName>[]): Verdict {
  if (steps.some(({ status }) => status === 'failed')) return 'not_verified';
  const isOpen = steps.some(({ checks }) => checks.some(({ blocking }) => blocking));
  return isOpen ? 'could_not_check' : 'verified';
}

function summarize(
  verdict: Verdict,
  steps: readonly Step<StepName>[],
  logs: readonly LogFinding[],
  existedBy: Date | undefined,
): string {
  if (verdict !== 'verified') {
    const status = verdict === 'not_verified' ? 'failed' : 'not_checked';
    const reason = steps.find((one) => one.status === status)?.message ?? 'unknown';
    return `${verdict === 'not_verified' ? 'Not verified' : 'Could not be checked'}: ${reason}.`;
  }
  const names = [...new Set(logs.flatMap(({ log }) => (log ? [log.name] : [])))];
  const proven = [
    'This artifact is signed by the given key',
    ...(names.length > 0 ? [`the signature is in the log ${names.join(' and ')}`] : []),
    ...(existedBy ? [`it existed no later than ${instantText(existedBy)}`] : []),
  ];
  const open = steps.flatMap(({ checks }) => checks.filter((check) => check.status === 'not_checked'));
  const reasons = [...new Set(open.map(({ message }) => message))];
  return `${proven.join('; ')}.${reasons.length > 0 ? ` Not checked: ${reasons.join('; ')}.` : ''}`;
}
