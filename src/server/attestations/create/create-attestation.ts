import type { CreateAttestationRequest, Submission } from '../../../../gen/attestation/v1/attestations_pb.js';
import { type Call, getPrincipal, type SerializedResponse } from '../../core/call.js';
import type { ApiError } from '../../core/errors.js';
import type { Lookup } from '../../core/lookup.js';
import type { Principal } from '../../core/principal.js';
import type { RandomSource } from '../../core/random.js';
import {
  type RateState,
  rateLimitExceeded,
  spentCeiling,
  tightestWindow,
  type WindowUse,
} from '../../core/rate-window.js';
import {
  findEarlierRequest,
  type Idempotency,
  keyReused,
  markReplayed,
  newRequestHash,
} from '../../idempotency/idempotency.js';
import type { LogOwner } from '../../log/log-cache.js';
import type { SchemaRegistry } from '../../schema/registry.js';
import { findDepartures, metadataWarnings, readMetadata } from '../metadata.js';
import type { Sequencer } from '../sequence/sequence.js';
import {
  type NewSubmission,
  type SequencedRow,
  SubmissionOutcome,
} from '../sequence/sequence-submissions.js';
import {
  type SubmissionView,
  submissionResponse,
  submissionView,
  visibleErrors,
} from '../submissions/submission-message.js';
import type { SubmissionRow } from '../submissions/submissions.js';
import { creationText } from './creation-text.js';
import {
  type CheckedSubmission,
  checkSubmission,
  type DsseSigner,
  departuresOf,
  newSubmission,
  type SentMetadata,
  type SignedStatement,
  stateSubmission,
  storedView,
  submitterOf,
} from './new-submission.js';

/** Dependencies of {@link createAttestation}. `clock`: Unix milliseconds. */
export type CreateDeps = {
  schemas: SchemaRegistry;
  /** The key that signs now. Throws `service.unavailable` if this process lacks it. */
  signers: Lookup<Principal['environment'], DsseSigner>;
  /** Its first key hashes requests that have an idempotency key. */
  idempotency: Idempotency;
  /** Unix milliseconds for `submitted_at`. Throws `service.unavailable` if the clock cannot be trusted. */
  submissionClock: () => number;
  random: RandomSource;
  /** Waits for a turn of the event loop in which no other large metadata is validated. */
  ownTurn: () => Promise<void>;
  clock: () => number;
  sequencers: Lookup<LogOwner, Sequencer>;
  /** Looks up a submission of any project. */
  findSubmission: (id: string) => Promise<SubmissionRow | undefined>;
  /**
   * Records what the write has counted, so that later requests are rejected before their body is read. Returns the
   * windows after it.
   */
  recordUse: (principal: Principal, use: WindowUse, projectUse?: WindowUse) => readonly RateState[];
  /** The window of the project that is spent as last recorded. */
  findSpentCeiling: (principal: Principal) => RateState | undefined;
};

/** Longer metadata takes more than a millisecond to validate if it is invalid throughout. */
export const LARGE_METADATA = 4 * 1024;

type Response = SerializedResponse<Submission>;

/**
 * Makes the handler that creates a submission, or replays the earlier request made with the same idempotency key. Commit
 * point: the sequencer's transaction.
 */
export function createAttestation(
  deps: CreateDeps,
): (request: CreateAttestationRequest, call: Call) => Promise<Response> {
  const { signers, sequencers } = deps;
  return async (request, call) => {
    const principal = getPrincipal(call);
    // A digest in upper case is the same request.
    for (const one of [request.artifact, ...request.subjects])
      if (one !== undefined) one.sha256 = one.sha256.toLowerCase();
    if (call.tally.room === 'replays') return replayOnly(deps, request, call);
    const metadata = readMetadata(request.metadata ?? {});
    if (metadata.canonical.length > LARGE_METADATA) await deps.ownTurn();
    const submitter = submitterOf(principal);
    const checked = checkSubmission(deps, request, metadata, submitter);
    const { environment } = principal;
    const signer = signers.peek(environment) ?? (await signers.get(environment));
    const stated = stateSubmission(deps, checked, submitter);
    const sequencer = sequencers.peek(principal) ?? (await sequencers.get(principal));
    let signed: SignedStatement;
    const signingEnded = sequencer.announce();
    try {
      signed = await signer.sign(stated.statement.text);
    } finally {
      signingEnded();
    }
    const idempotency = idempotencyOf(deps, call, request, checked);
    const row = newSubmission(stated, signed, signer.keyId, submitter, idempotency);
    const result = await sequencer.add(row, call.startedMs);
    recordUse(deps, principal, call, result);
    switch (result.outcome) {
      case SubmissionOutcome.STORED:
        call.tally.due = 0;
        return withWarnings(storedView(row, result), principal, checked, request);
      case SubmissionOutcome.REPLAYED:
        return replay(deps, result.resourceId, call, checked, request);
      case SubmissionOutcome.LIMITED:
        throw windowSpent(deps, call, result.projectUse);
      default: {
        // The write compares only the hash under the newest secret key.
        const earlier = await findEarlierRequest(deps.idempotency, call, request);
        if (earlier?.outcome !== 'replayed') throw keyReused();
        return replay(deps, earlier.resourceId, call, checked, request);
      }
    }
  };
}

/** Replays an earlier request when the rate limit leaves room for nothing else. Throws `rate_limit.exceeded` if there is none. */
async function replayOnly(
  deps: CreateDeps,
  request: CreateAttestationRequest,
  call: Call,
): Promise<Response> {
  const earlier = await findEarlierRequest(deps.idempotency, call, request);
  if (earlier === undefined) throw windowSpent(deps, call);
  if (earlier.outcome === 'reused') throw keyReused();
  const { canonical, value } = readMetadata(request.metadata ?? {});
  const departures = findDepartures(deps.schemas, value);
  return replay(deps, earlier.resourceId, call, { metadata: canonical, departures }, request);
}

/** The error of a submission beyond a window of the call, or of the project, by what the write has counted of it. */
export function windowSpent(
  { clock, findSpentCeiling }: Pick<CreateDeps, 'clock' | 'findSpentCeiling'>,
  call: Call,
  projectUse?: WindowUse,
): ApiError {
  const principal = getPrincipal(call);
  const tightest = tightestWindow(call.rateStates);
  const ofProject = () =>
    projectUse === undefined
      ? findSpentCeiling(principal)
      : spentCeiling(principal, projectUse, projectUse.second);
  const spent = tightest !== undefined && tightest.remaining <= 0 ? tightest : (ofProject() ?? tightest);
  if (spent === undefined) throw new Error('no window is known of a submission over the limit');
  return rateLimitExceeded(spent, clock());
}

/** Records what a write has counted, for the response's headers and for later requests. */
export function recordUse(
  deps: CreateDeps,
  principal: Principal,
  call: Call,
  { use, projectUse }: SequencedRow,
): void {
  if (use !== undefined) call.rateStates = deps.recordUse(principal, use, projectUse);
}

async function replay(
  deps: CreateDeps,
  id: string | null,
  call: Call,
  sent: SentMetadata,
  request: CreateAttestationRequest,
): Promise<Response> {
  const row = id === null ? undefined : await deps.findSubmission(id);
  if (row === undefined) throw new Error(`the idempotency key's submission ${id} is missing`);
  markReplayed(call);
  return withWarnings(submissionView(row), getPrincipal(call), sent, request);
}

/** The answer; its subjects are those of the request, which the submission is of. */
function withWarnings(
  shown: SubmissionView,
  { environment }: Principal,
  sent: SentMetadata,
  { subjects }: CreateAttestationRequest,
): Response {
  const warnings = metadataWarnings(shown.schema, visibleErrors(shown), departuresOf(shown, sent));
  return submissionResponse(shown, environment, { warnings, subjects });
}

function idempotencyOf(
  { idempotency }: CreateDeps,
  { method, idempotencyKey: key }: Call,
  { validation }: CreateAttestationRequest,
  checked: CheckedSubmission,
): NewSubmission['idempotency'] {
  if (key === undefined) return undefined;
  return { key, requestHash: newRequestHash(idempotency, method, creationText(checked, validation)) };
}
