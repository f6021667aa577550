import { create, type JsonObject } from '@bufbuild/protobuf';
import {
  type AttestationService,
  type ListAttestationsRequest,
  ListAttestationsRequestSchema,
  type ListAttestationsResponse,
  ListAttestationsResponseSchema,
  SubmissionStatus,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { HttpBodySchema } from '../../../gen/google/api/httpbody_pb.js';
import { leafOts } from '../../proof/bundle/leaf-ots.js';
import { jcs } from '../../proof/bytes/jcs.js';
import { tlogProof } from '../../proof/log/tlog-proof.js';
import { type Call, getPrincipal, type Handlers, type SerializedResponse } from '../core/call.js';
import { ApiError } from '../core/errors.js';
import type { Principal } from '../core/principal.js';
import type { Pool } from '../database/connect.js';
import { compileSplicingWriter } from '../json/codec.js';
import { dateNotBefore, dateOfTimestamp } from '../json/well-known-types.js';
import type { LogCache } from '../log/log-cache.js';
import type { Cursors } from '../rpc/cursor.js';
import { pageReader } from '../rpc/list-page.js';
import type { SerializedBundle } from './bundles/bundles.js';
import { createReceipt, type ReceiptDeps } from './bundles/receipts.js';
import { type BatchCreateDeps, batchCreateAttestations } from './create/batch-create.js';
import { createAttestation } from './create/create-attestation.js';
import { createListRenderer, type RenderList } from './lists/list-template.js';
import type { KnownBatches } from './lists/listed-batches.js';
import { listSubmissions } from './lists/submission-lists.js';
import { type ChangeDeps, deleteAttestation, updateAttestation } from './submissions/change-metadata.js';
import { submissionMessage } from './submissions/submission-message.js';
import type { SubmissionReader } from './submissions/submission-reader.js';

/** Dependencies of the handlers of AttestationService. `clock`: Unix milliseconds. */
export type AttestationDeps = BatchCreateDeps &
  ChangeDeps &
  ReceiptDeps & {
    listPool: Pool;
    knownBatches: KnownBatches;
    logCache: LogCache;
    reader: SubmissionReader;
    cursors: Cursors;
  };

const writeList = compileSplicingWriter(ListAttestationsResponseSchema);

const readPage = pageReader(ListAttestationsRequestSchema);

/** The handlers of AttestationService. */
export function attestationHandlers(deps: AttestationDeps): Handlers<typeof AttestationService> {
  const renderList = createListRenderer();
  return {
    createAttestation: createAttestation(deps),
    batchCreateAttestations: (_request, call) => batchCreateAttestations(deps, call),
    getAttestation: async ({ id }, call) => retryStamp(call, await deps.reader.read(id, getPrincipal(call))),
    updateAttestation: (request, call) => updateAttestation(deps, request, call),
    deleteAttestation: (request, call) => deleteAttestation(deps, request, call),
    listAttestations: (request, call) => listAttestations(deps, renderList, request, getPrincipal(call)),
    getBundle: async ({ id }, call) => retryStamp(call, await deps.reader.readBundle(id, getPrincipal(call))),
    downloadBundle: async ({ id, format }, call) => {
      const bundle = await readFor(deps, format, id, call);
      const body =
        format === 'bundle.cose' ? await renderReceipt(deps, id, bundle) : renderBundle(bundle, format);
      // OpenTimestamps clients take the name without `.ots` for that of the file whose digest it is.
      const name = format === 'bundle.ots' ? `${id}.ots` : `${id}.${format}`;
      call.responseHeaders.set('content-disposition', `attachment; filename="${name}"`);
      return create(HttpBodySchema, body);
    },
  };
}

const STAMPED_FORMATS = ['bundle.json', 'bundle.sigstore.json'];

/** Reads a bundle to download: formats without time stamps over the signature do not wait for them. */
async function readFor({ reader }: AttestationDeps, format: string, id: string, call: Call) {
  if (!STAMPED_FORMATS.includes(format)) return reader.readBundle(id, getPrincipal(call), 0);
  return retryStamp(call, await reader.readBundle(id, getPrincipal(call)));
}

/** Adds `Retry-After` to the response if a time stamp is pending. */
function retryStamp<R extends { stampRetrySeconds?: number | undefined }>(call: Call, read: R): R {
  if (read.stampRetrySeconds !== undefined)
    call.responseHeaders.set('retry-after', String(read.stampRetrySeconds));
  return read;
}

async function renderReceipt(deps: AttestationDeps, id: string, bundle: SerializedBundle) {
  const data = await createReceipt(deps, id, bundle);
  return { contentType: 'application/cose; cose-type="cose-sign1"', data };
}

function renderBundle(bundle: SerializedBundle, format: string) {
  switch (format) {
    case 'bundle.json':
      return { contentType: 'application/json', data: bundle.bytes };
    case 'bundle.sigstore.json':
      return { contentType: 'application/json', data: Buffer.from(jcs(sigstoreBundleOf(bundle))) };
    case 'bundle.tlog-proof': {
      const { note = '', inclusionProof = [] } = bundle.message().checkpoints[0] ?? {};
      return {
        contentType: 'text/plain; charset=utf-8',
        data: Buffer.from(tlogProof(bundle.logIndex, inclusionProof, note)),
      };
    }
    case 'bundle.ots': {
      const data = leafOts(bundle.message(), bundle.logIndex);
      if (data === undefined) {
        throw new ApiError(ErrorCode.BUNDLE_NOT_READY, NO_OTS, {}, { 'retry-after': OTS_RETRY_SECONDS });
      }
      return { contentType: 'application/vnd.opentimestamps.v1', data };
    }
    default:
      throw new Error(`bundles have no format ${format}`);
  }
}

/** Throws `statement.erased` if the statement is: Sigstore bundles have an envelope. */
function sigstoreBundleOf(bundle: SerializedBundle): JsonObject {
  const { submission, sigstoreBundle = {} } = bundle.message();
  if (submission?.statementErasedAt === undefined) return sigstoreBundle;
  const message =
    'the operator has erased the statement of this submission; bundle.json, bundle.tlog-proof, bundle.ots and bundle.cose still prove its leaf';
  throw new ApiError(ErrorCode.STATEMENT_ERASED, message);
}

/** Bitcoin makes a block in ten minutes, and calendars wait for several. */
const OTS_RETRY_SECONDS = '3600';
const NO_OTS =
  'no OpenTimestamps proof of this submission has landed; Bitcoin takes hours after the hourly request, if there is such a witness';

async function listAttestations(
  deps: AttestationDeps,
  renderList: RenderList,
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
  const sha256 = request.artifactSha256.toLowerCase();
  const build = request.build === '' ? undefined : request.build;
  const artifactSha256 = sha256 === '' ? undefined : Buffer.from(sha256, 'hex');
  const { rows, nextCursor } = await readPage(deps.cursors, request, {
    // Without an artifact and a build as in former versions, whose cursors go on working.
    query: [
      'attestations',
      projectId,
      environment,
      ...Object.values(filters),
      ...(sha256 ? [sha256] : []),
      ...(build === undefined ? [] : ['build', build]),
    ],
    read: async (position, limit) => {
      const before = position && { logId: Number(position[0]), logIndex: Number(position[1]) };
      const logIds = await deps.logCache.logIds(environment);
      const query = { projectId, logIds, artifactSha256, build, ...filters, before, limit };
      const page = await listSubmissions(deps.listPool, query, deps.knownBatches);
      return { ...page, stoppedAt: page.stoppedAt && positionOf(page.stoppedAt) };
    },
    positionOf,
  });
  const page = create(ListAttestationsResponseSchema, { nextCursor });
  // Taken out: a response that is kept for a while would have its rows copied by collections, a quarter of the API's CPU.
  const take = () => rows.splice(0);
  return {
    json: () => ({ bytes: Buffer.from(writeList(page, { data: renderList(take(), environment) })) }),
    message: () => ({ ...page, data: take().map((row) => submissionMessage(row, environment)) }),
  };
}

const positionOf = ({ logId, logIndex }: { logId: number; logIndex: number }) => [logId, logIndex];
