import { create, getOption } from '@bufbuild/protobuf';
import { max_bytes as maxBytes } from '../../../../gen/attestation/options/v1/options_pb.js';
import {
  AttestationService,
  CreateAttestationRequestSchema,
  type Submission,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import {
  RegisterStatementRequestSchema,
  type ScittService,
} from '../../../../gen/attestation/v1/scitt_pb.js';
import { type HttpBody, HttpBodySchema } from '../../../../gen/google/api/httpbody_pb.js';
import { type Call, getPrincipal, type Handlers, messageOf } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Principal } from '../../core/principal.js';
import type { Pool } from '../../database/connect.js';
import type { LogCache } from '../../log/log-cache.js';
import { createReceipt, type ReceiptDeps } from '../bundles/receipts.js';
import { listSubmissions } from '../lists/submission-lists.js';
import type { SubmissionReader } from '../submissions/submission-reader.js';
import { readSignedStatement, STATEMENT_SCHEMA } from './signed-statement.js';

/** Dependencies of the handlers of ScittService. `createAttestation`: the handler of that RPC. */
export type ScittDeps = ReceiptDeps & {
  logCache: LogCache;
  listPool: Pool;
  reader: SubmissionReader;
  createAttestation: Handlers<typeof AttestationService>['createAttestation'];
};

/** The handlers of ScittService: a signed statement is a submission, and the submission's id that of the entry. */
export function scittHandlers(deps: ScittDeps): Handlers<typeof ScittService> {
  return {
    registerStatement: async ({ statement }, call) => {
      const id = await register(deps, call, readBody(call, statement));
      return (await findReceipt(deps, call, id, isNotReady)) ?? pending(call, SEE_OTHER);
    },
    getEntry: async ({ id }, call) =>
      (await findReceipt(deps, call, id, isNotReadyYet)) ?? pending(call, ACCEPTED),
  };
}

const [ACCEPTED, SEE_OTHER] = [202, 303];
const MAX_STATEMENT_BYTES = getOption(RegisterStatementRequestSchema.field.statement, maxBytes);
const RECEIPT_TYPE = 'application/cose';
const RETRY_SECONDS = '1';

function readBody({ rules: { requestTypes } }: Call, body: HttpBody | undefined): Uint8Array {
  const { contentType = '', data = new Uint8Array() } = body ?? {};
  const [essence = ''] = contentType.split(';');
  if (!requestTypes.includes(essence.trim().toLowerCase())) {
    const message = `the body must be ${requestTypes.join(' or ')}`;
    const headers = { accept: requestTypes.join(', ') };
    throw new ApiError(ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE, message, {}, headers);
  }
  if (data.length > MAX_STATEMENT_BYTES) {
    const message = `the signed statement is larger than ${MAX_STATEMENT_BYTES} bytes`;
    throw new ApiError(ErrorCode.REQUEST_TOO_LARGE, message);
  }
  return data;
}

/**
 * Submits a statement unless the project has done so before. Returns the submission's id. The same statement sent at once
 * under one API key is one submission: the idempotency key is made of its digest, and no caller can send it.
 */
async function register(deps: ScittDeps, call: Call, body: Uint8Array): Promise<string> {
  const { digest, metadata } = readSignedStatement(body);
  const known = await findEntry(deps, getPrincipal(call), digest);
  if (known !== undefined) {
    call.tally.due = 1;
    return known;
  }
  const request = create(CreateAttestationRequestSchema, { artifact: { sha256: digest }, metadata });
  const creation: Call = {
    ...call,
    method: AttestationService.method.createAttestation,
    idempotencyKey: `scitt statement ${digest}`,
    responseHeaders: new Map(),
  };
  try {
    return (messageOf(await deps.createAttestation(request, creation)) as Submission).id;
  } finally {
    call.rateStates = creation.rateStates;
  }
}

/** The project's newest submission of a signed statement with this digest; undefined if it has none. */
async function findEntry(
  { listPool, logCache }: ScittDeps,
  { projectId, environment }: Principal,
  digest: string,
): Promise<string | undefined> {
  const { rows } = await listSubmissions(listPool, {
    projectId,
    logIds: await logCache.logIds(environment),
    artifactSha256: Buffer.from(digest, 'hex'),
    schema: STATEMENT_SCHEMA,
    status: undefined,
    submittedAfter: undefined,
    submittedBefore: undefined,
    before: undefined,
    limit: 1,
  });
  return rows[0]?.id;
}

/** Makes the receipt of an entry, and names the entry by `Location`. Returns undefined if `isPending` holds of the error. */
async function findReceipt(
  deps: ScittDeps,
  call: Call,
  id: string,
  isPending: (error: unknown) => boolean,
): Promise<HttpBody | undefined> {
  try {
    const bundle = await deps.reader.readBundle(id, getPrincipal(call), 0);
    const data = await createReceipt(deps, id, bundle);
    call.responseHeaders.set('location', `/entries/${id}`);
    return create(HttpBodySchema, { contentType: RECEIPT_TYPE, data });
  } catch (error) {
    if (!isPending(error)) throw error;
    call.responseHeaders.set('location', `/entries/${id}`);
    return undefined;
  }
}

function isNotReady(error: unknown): boolean {
  return error instanceof ApiError && error.code === ErrorCode.BUNDLE_NOT_READY;
}

/** Whether a receipt will be there; never, for example, if the batch has failed. */
function isNotReadyYet(error: unknown): boolean {
  return isNotReady(error) && (error as ApiError).headers['retry-after'] !== undefined;
}

function pending(call: Call, status: number): HttpBody {
  call.pendingStatus = status;
  call.responseHeaders.set('retry-after', RETRY_SECONDS);
  return create(HttpBodySchema, { contentType: RECEIPT_TYPE });
}
