import { create } from '@bufbuild/protobuf';
import {
  type AttestationService,
  type CreateAttestationRequest,
  type ListAttestationsRequest,
  ListAttestationsRequestSchema,
  type ListAttestationsResponse,
  ListAttestationsResponseSchema,
  type Submission,
  SubmissionStatus,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { HttpBodySchema } from '../../../../gen/google/api/httpbody_pb.js';
import { toHex } from '../../../proof/bytes/encoding.js';
import { jcs } from '../../../proof/bytes/jcs.js';
import { tlogProof } from '../../../proof/log/tlog-proof.js';
import { type Call, getPrincipal, type Handlers, type SerializedResponse } from '../../core/call.js';
import type { ApiError } from '../../core/errors.js';
import type { Principal } from '../../core/principal.js';
import { rateLimitExceeded, tightestWindow } from '../../core/rate-window.js';
import { dateNotBefore, dateOfTimestamp } from '../../json/timestamp.js';
import { compileSplicingWriter } from '../../json/writer.js';
import { submissionWindowStates } from '../../limits/rate-windows.js';
import type { LogCache } from '../../logs/log-cache.js';
import type { Sequencer } from '../../pipeline/sequence.js';
import type { Pool } from '../../store/database/connect.js';
import {
  type NewSubmission,
  type SequencedRow,
  SubmissionOutcome,
  type WindowUse,
} from '../../store/submissions/sequence-submissions.js';
import { listSubmissions } from '../../store/submissions/submission-lists.js';
import type { SubmissionRow } from '../../store/submissions/submissions.js';
import type { Cursors } from '../cursor.js';
import { findEarlierRequest, keyReused, markReplayed } from '../idempotency.js';
import { pageReader } from '../list-page.js';
import type { SerializedBundle } from './bundles.js';
import { type ChangeDeps, deleteAttestation, updateAttestation } from './change-metadata.js';
import { type Prepare, prepareSubmission } from './create-attestation.js';
import { metadataWarnings } from './metadata.js';
import {
  parseStored,
  type SubmissionView,
  visibleErrors,
  submissionView,
  submissionJson,
  submissionMessage,
  submissionResponse,
} from './submission-message.js';
import type { SubmissionReader } from './submission-reader.js';

/** What the handlers work with. */
export type AttestationDeps = Prepare &
  ChangeDeps & {
    listPool: Pool;
    logCache: LogCache;
    sequencerOf: (environment: Principal['environment']) => Promise<Sequencer>;
    /** A submission of any project, by id. */
    findSubmission: (id: string) => Promise<SubmissionRow | undefined>;
    reader: SubmissionReader;
    cursors: Cursors;
    clock: () => number;
    /** Told what a write has counted, so that a window known to be spent is refused before its body is read. */
    recordUse: (principal: Principal, use: WindowUse) => void;
  };

const writeList = compileSplicingWriter(ListAttestationsResponseSchema);

type Response = SerializedResponse<Submission>;

const readPage = pageReader(ListAttestationsRequestSchema);

/** The handlers of AttestationService. */
export function attestationHandlers(deps: AttestationDeps): Handlers<typeof AttestationService> {
  return {
    createAttestation: (request, call) => createAttestation(deps, request, call),
    getAttestation: ({ id }, call) => deps.reader.read(id, getPrincipal(call)),
    updateAttestation: (request, call) => updateAttestation(deps, request, call),
    deleteAttestation: (request, call) => deleteAttestation(deps, request, call),
    listAttestations: (request, call) => listAttestations(deps, request, getPrincipal(call)),
    getBundle: ({ id }, call) => deps.reader.readBundle(id, getPrincipal(call)),
    downloadBundle: async ({ id, format }, call) => {
      const bundle = await deps.reader.readBundle(id, getPrincipal(call));
      call.responseHeaders.set('content-disposition', `attachment; filename="${id}.${format}"`);
      return create(HttpBodySchema, renderBundle(bundle, format));
    },
  };
}

async function createAttestation(
  deps: AttestationDeps,
  request: CreateAttestationRequest,
  call: Call,
): Promise<Response> {
  const principal = getPrincipal(call);
  // In either case the same digest, and the same request.
  if (request.artifact !== undefined) request.artifact.sha256 = request.artifact.sha256.toLowerCase();
  if (call.isReplayOnly) return replayOnly(deps, request, principal, call);
  const row = await prepareSubmission(deps, request, call);
  const sequencer = await deps.sequencerOf(principal.environment);
  const result = await sequencer.add(row);
  recordUse(deps, principal, call, result);
  switch (result.outcome) {
    case SubmissionOutcome.STORED:
      call.isCounted = true;
      return storedResponse(row, result, principal);
    case SubmissionOutcome.REPLAYED:
      return replay(deps, result.resourceId, principal, call);
    case SubmissionOutcome.LIMITED:
      throw windowSpent(deps, call);
    default: {
      // The write compares with the hash under the newest secret key alone.
      const earlier = await findEarlierRequest(deps.idempotency, call, request);
      if (earlier?.outcome !== 'replayed') throw keyReused();
      return replay(deps, earlier.resourceId, principal, call);
    }
  }
}

/** The answer to a creation that was made before, when none can be made: nothing is checked, signed or written. */
async function replayOnly(
  deps: AttestationDeps,
  request: CreateAttestationRequest,
  principal: Principal,
  call: Call,
): Promise<Response> {
  const earlier = await findEarlierRequest(deps.idempotency, call, request);
  if (earlier === undefined) throw windowSpent(deps, call);
  if (earlier.outcome === 'reused') throw keyReused();
  return replay(deps, earlier.resourceId, principal, call);
}

function windowSpent({ clock }: AttestationDeps, { rateStates }: Call): ApiError {
  const spent = tightestWindow(rateStates);
  if (spent === undefined) throw new Error('a submission was over the limit of no window');
  return rateLimitExceeded(spent, clock());
}

function recordUse(deps: AttestationDeps, principal: Principal, call: Call, { use }: SequencedRow): void {
  if (use === undefined) return;
  call.rateStates = submissionWindowStates(principal, use, use.second);
  deps.recordUse(principal, use);
}

/** The answer to a creation, from the row as it was sent to be stored. */
function storedResponse(row: NewSubmission, { logIndex }: SequencedRow, principal: Principal) {
  return withWarnings(
    {
      id: row.id,
      logIndex: logIndex ?? 0,
      submittedAtMs: row.submittedAtMs,
      artifactSha256: toHex(row.artifactSha256),
      schema: row.schema,
      metadata: row.metadata,
      metadataState: row.metadataState,
      metadataErrors: parseStored(row.metadataErrors),
      attestedMetadata: null,
      salt: toHex(row.salt),
      leafSha256: toHex(row.leafHash),
      redactedAtMs: null,
      batchId: null,
      batchStatus: null,
      witnessedAtMs: null,
    },
    principal,
  );
}

async function replay(
  deps: AttestationDeps,
  id: string | null,
  principal: Principal,
  call: Call,
): Promise<Response> {
  const row = id === null ? undefined : await deps.findSubmission(id);
  if (row === undefined) throw new Error(`the idempotency key's submission ${id} is missing`);
  markReplayed(call);
  return withWarnings(submissionView(row), principal);
}

function withWarnings(shown: SubmissionView, { environment }: Principal): Response {
  return submissionResponse(shown, environment, {
    warnings: metadataWarnings(shown.schema, visibleErrors(shown)),
  });
}

function renderBundle(bundle: SerializedBundle, format: string) {
  switch (format) {
    case 'bundle.json':
      return { contentType: 'application/json', data: bundle.json().bytes };
    case 'bundle.sigstore.json':
      return {
        contentType: 'application/json',
        data: Buffer.from(jcs(bundle.message().sigstoreBundle ?? {})),
      };
    case 'bundle.tlog-proof': {
      const { note = '', inclusionProof = [] } = bundle.message().checkpoints[0] ?? {};
      return {
        contentType: 'text/plain; charset=utf-8',
        data: Buffer.from(tlogProof(bundle.logIndex, inclusionProof, note)),
      };
    }
    default:
      throw new Error(`bundles have no format ${format}`);
  }
}

async function listAttestations(
  deps: AttestationDeps,
  request: ListAttestationsRequest,
  principal: Principal,
): Promise<SerializedResponse<ListAttestationsResponse>> {
  const { projectId, environment } = principal;
  const filters = {
    schema: request.schema === '' ? undefined : request.schema,
    status: request.status === SubmissionStatus.UNSPECIFIED ? undefined : request.status,
    submittedAfter: request.submittedAfter && dateOfTimestamp(request.submittedAfter),
    submittedBefore: request.submittedBefore && dateNotBefore(request.submittedBefore),
  };
  const { rows, nextCursor } = await readPage(deps.cursors, request, {
    query: ['attestations', projectId, environment, ...Object.values(filters)],
    read: async (position, limit) => {
      const before = position && { logId: Number(position[0]), logIndex: Number(position[1]) };
      const logIds = await deps.logCache.logIds(environment);
      return listSubmissions(deps.listPool, { projectId, logIds, ...filters, before, limit });
    },
    positionOf: ({ logId, logIndex }) => [logId, logIndex],
  });
  const page = create(ListAttestationsResponseSchema, { nextCursor });
  return {
    json: () => ({ bytes: Buffer.from(writeList(page, { data: listJson(rows, environment) })) }),
    message: () => ({ ...page, data: rows.map((row) => submissionMessage(row, environment)) }),
  };
}

/** Put together by `+`: for 200 submissions of 60 KiB Array.join takes another 16 ms, as it copies them once more. */
function listJson(rows: readonly SubmissionView[], environment: Principal['environment']): string {
  let items = '';
  for (const row of rows) items += `${items === '' ? '' : ','}${submissionJson(row, environment)}`;
  return `[${items}]`;
}
