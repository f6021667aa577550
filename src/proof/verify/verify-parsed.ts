/** The steps of a verification of a bundle that is well-formed. */
import { leafHash } from '../log/merkle.js';
import type { ProvenSet } from '../set/verify-set.js';
import type { Statement } from '../statement/statement.js';
import { type EvidenceSources, type Finding, unknownDetails } from './evidence/evidence.js';
import { checkSignatureStamps, type StampFinding } from './evidence/signature-stamps.js';
import type { Memo } from './memo.js';
import type { ParsedBundle } from './read/parsed-bundle.js';
import { type Check, notChecked, passed, type Step, step } from './report.js';
import { type CheckpointChecks, checkCheckpoints, checkInclusion, checkLogEnd } from './steps/log-steps.js';
import {
  checkDemands,
  checkPolicies,
  findPolicies,
  type Policy,
  type WitnessDemands,
} from './steps/policy-step.js';
import { checkSet, isOfSet, type SetAsked } from './steps/set-step.js';
import { checkLeaf, checkSignature, findSigner } from './steps/signature-step.js';
import { type Asked, checkStatement, remarkSubmittedAt } from './steps/statement-step.js';
import { checkWitnesses, type WitnessFinding } from './steps/witness-step.js';
import type { Trust } from './trust.js';
import { checkReceipt } from './verify-receipt.js';

/** What a bundle is verified about and against, beside the trust roots. `memo`s must be of the same trust and sources. */
export type Question = Asked &
  SetAsked &
  WitnessDemands & {
    readonly receipt?: Uint8Array | undefined;
    readonly now: Date;
    readonly policy: Policy | undefined;
    readonly sources: EvidenceSources;
    readonly checkpoints: Memo<CheckpointChecks>;
    readonly witnesses: Memo<Finding>;
  };

/** The results of all steps. `ignored` are JSON pointers to members that nothing is claimed from. */
export type Findings = {
  readonly steps: readonly Step[];
  readonly witnesses: readonly WitnessFinding[];
  readonly stamps: readonly StampFinding[];
  readonly ignored: readonly string[];
  readonly statement?: Statement | undefined;
  /** The metadata, if it was given and opens the commitment. */
  readonly metadata?: unknown;
  /** The set that was attested, if one is involved. */
  readonly set?: ProvenSet | undefined;
  readonly existedBy?: Date | undefined;
};

const NO_WITNESS: Check = notChecked('witness.none', 'no witness is in the bundle');

/** The check of a bundle that can be read. */
export const WELL_FORMED: Check = passed('shape.valid', 'the bundle is well-formed');

/** Takes all eight steps. */
export async function verifyParsedBundle(
  parsed: ParsedBundle,
  trust: Trust,
  question: Question,
): Promise<Findings> {
  const { environment, now, sources } = question;
  const signer = await findSigner(parsed, trust);
  const { checks, statement, metadata } = checkStatement(parsed, question, {
    isSigned: signer?.isValid === true,
    isOfSet: isOfSet(parsed, question),
  });
  const found = await checkSet(parsed, statement?.artifactSha256, question);
  const inclusion = step('inclusion', [
    ...checkInclusion(parsed),
    ...(await checkBesideBundle(parsed, trust, question)),
  ]);
  const { checks: byLog, signed } = await checkCheckpoints(parsed, {
    trust,
    environment,
    memo: question.checkpoints,
  });
  const witnesses = await checkWitnesses(parsed, { trust, sources, memo: question.witnesses }, signed);
  const stamps = await checkSignatureStamps(parsed, trust);
  const witnessedBy = earliest(witnesses);
  const existedBy = earliest([...witnesses, ...stamps]);
  const checkpoint = step('checkpoint', [...byLog, ...checkLogEnd(parsed, trust, witnessedBy)]);
  // A stamp of the signature says nothing of the log: policies go by what vouches for checkpoints.
  const policies = question.policy ? [question.policy] : findPolicies(trust, environment, witnessedBy);
  const isIncluded = inclusion.status === 'passed';
  const isLogged = isIncluded && checkpoint.status === 'passed';
  const ignored = [...parsed.ignored, ...parsed.witnesses.flatMap(unknownDetails)];
  const steps = [
    step('shape', [WELL_FORMED, ...ignored.map(remark)]),
    step('statement', [...checks, ...found.checks, ...remarkSubmittedAt(statement, existedBy)]),
    step('signature', [
      ...(await checkSignature(parsed, signer, { environment, now, existedBy, isLogged })),
      ...stamps.map(({ check }) => check),
    ]),
    step('leaf', checkLeaf(parsed, signer, isIncluded)),
    inclusion,
    checkpoint,
    step('witnesses', witnesses.length > 0 ? witnesses : [NO_WITNESS]),
    step('policy', [
      ...checkPolicies(policies, parsed, witnesses, [inclusion, checkpoint]),
      ...checkDemands(question, parsed, witnesses, [inclusion, checkpoint]),
    ]),
  ];
  const unclaimed = [...ignored, ...found.ignored];
  return { steps, witnesses, stamps, ignored: unclaimed, statement, metadata, set: found.set, existedBy };
}

function remark(path: string): Check {
  return {
    ...notChecked('shape.unknown_member', `${path} is not known to this version and is ignored`),
    path,
  };
}

async function checkBesideBundle(
  { entry, submission }: ParsedBundle,
  trust: Trust,
  { receipt, environment, now }: Question,
): Promise<Check[]> {
  if (receipt === undefined) return [];
  const asked = { leafHash: leafHash(entry.body), submissionId: submission.id, environment, now };
  return [(await checkReceipt(receipt, trust, asked)).check];
}

function earliest(findings: readonly { readonly time?: Date }[]): Date | undefined {
  const times = findings.flatMap(({ time }) => (time === undefined ? [] : [time.getTime()]));
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}
