import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type Batch,
  type BatchQuorumSchema,
  BatchSchema,
  type BatchService,
  BatchStatus,
  type BatchWitnessSchema,
  ListBatchesRequestSchema,
  ListBatchesResponseSchema,
  WitnessStatus,
} from '../../../../gen/attestation/v1/batches_pb.js';
import { WitnessKind } from '../../../../gen/attestation/v1/bundle_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { LOG_WITNESS_NAME } from '../../../proof/bundle/bundle.js';
import { toHex } from '../../../proof/bytes/encoding.js';
import { getPrincipal, type Handlers } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Pool } from '../../database/connect.js';
import type { LogCache } from '../../log/log-cache.js';
import { type BatchRow, findProjectBatch, listProjectBatches } from '../../log/store/batches.js';
import { listPolicies, type Policy } from '../../log/store/policies.js';
import type { Cursors } from '../../rpc/cursor.js';
import { pageReader } from '../../rpc/list-page.js';
import { listRequests, type RequestStatus } from '../store/witness-requests.js';
import {
  type Covering,
  listCoveringEvidence,
  listWitnessStates,
  type WitnessState,
} from '../store/witnesses.js';
import { pendingDetail } from './pending-detail.js';
import { isOperator, witnessErrorText } from './witness-errors.js';

type BatchDeps = { pool: Pool; logCache: LogCache; cursors: Cursors; clock: () => number };

const readPage = pageReader(ListBatchesRequestSchema);

/** The handlers of BatchService. */
export function batchHandlers(deps: BatchDeps): Handlers<typeof BatchService> {
  return {
    getBatch: async ({ id }, call) => {
      const { projectId, environment } = getPrincipal(call);
      const batch = await findProjectBatch(deps.pool, projectId, environment, id);
      if (batch === undefined) {
        throw new ApiError(
          ErrorCode.BATCH_NOT_FOUND,
          "no batch with this id holds a submission of the project in the API key's environment",
        );
      }
      const [message] = await batchMessages(deps, [batch], { environment, isForOperator: isOperator(call) });
      return message as Batch;
    },
    listBatches: async (request, call) => {
      const { projectId, environment } = getPrincipal(call);
      const status = request.status === BatchStatus.UNSPECIFIED ? undefined : request.status;
      const { rows, nextCursor } = await readPage(deps.cursors, request, {
        query: ['batches', projectId, environment, status],
        read: async (position, limit) => {
          const before = position && { logId: Number(position[0]), treeSize: Number(position[1]) };
          const logIds = await deps.logCache.logIds(environment);
          return listProjectBatches(deps.pool, { projectId, logIds, status, before, limit });
        },
        positionOf: ({ logId, treeSize }) => [logId, treeSize],
      });
      const data = await batchMessages(deps, rows, { environment, isForOperator: isOperator(call) });
      return create(ListBatchesResponseSchema, { data, nextCursor });
    },
  };
}

async function batchMessages(
  { pool, clock }: BatchDeps,
  batches: readonly BatchRow[],
  { environment, isForOperator }: { environment: number; isForOperator: boolean },
): Promise<Batch[]> {
  const logIds = [...new Set(batches.map(({ logId }) => logId))];
  const [policies, evidence, states, requests] = await Promise.all([
    listPolicies(pool),
    listCoveringEvidence(pool, batches),
    Promise.all(logIds.map((logId) => listWitnessStates(pool, logId))),
    Promise.all(logIds.map((logId) => listRequests(pool, logId))),
  ]);
  return batches.map((batch) => {
    const { logId, treeSize, policyVersion } = batch;
    const policy = policies.find((p) => p.environment === environment && p.version === policyVersion);
    const covering = evidence.filter((piece) => piece.logId === logId && piece.batchSize === treeSize);
    const asked = states.flat().filter((state) => state.logId === logId);
    const pending = requests
      .flat()
      .filter((request) => request.logId === logId && request.treeSize >= treeSize);
    const witnesses = batchWitnesses({ batch, policy, covering, asked, pending, isForOperator }, clock());
    return batchMessage(batch, environment, witnesses, batchQuorums(policy, covering));
  });
}

function batchMessage(
  batch: BatchRow,
  environment: number,
  witnesses: WitnessInit[],
  quorums: QuorumInit[],
): Batch {
  return create(BatchSchema, {
    id: batch.id,
    environment,
    status: batch.status,
    rootHash: toHex(batch.rootHash),
    firstIndex: BigInt(batch.firstIndex),
    treeSize: BigInt(batch.treeSize),
    leafCount: BigInt(batch.treeSize - batch.firstIndex),
    sealedAt: timestampFromDate(batch.sealedAt),
    ...(batch.witnessedAt === null ? {} : { witnessedAt: timestampFromDate(batch.witnessedAt) }),
    checkpoint: batch.note,
    witnesses,
    quorums,
  });
}

type QuorumInit = MessageInitShape<typeof BatchQuorumSchema>;

function batchQuorums(
  policy: Policy | undefined,
  covering: readonly Pick<Covering, 'witness'>[],
): QuorumInit[] {
  return (policy?.quorums ?? []).map(({ threshold, members }) => {
    const landed = members.filter((name) => covering.some(({ witness }) => witness === name)).length;
    return { threshold, members, landed };
  });
}

type WitnessInit = MessageInitShape<typeof BatchWitnessSchema>;

/** The states of a batch's witnesses. */
type BatchEvidence = {
  batch: BatchRow;
  policy: Policy | undefined;
  covering: readonly Omit<Covering, 'evidence'>[];
  asked: readonly WitnessState[];
  /** The pending requests that cover the batch, the smallest size first. */
  pending: readonly RequestStatus[];
  isForOperator: boolean;
};

/** The log first, then the witnesses of the batch's policy, then others that have vouched. */
function batchWitnesses(
  { batch, policy, covering, asked: states, pending, isForOperator }: BatchEvidence,
  nowMs: number,
): WitnessInit[] {
  const isOverdue = nowMs > batch.deadlineAt.getTime();
  const asked = (policy?.witnesses ?? []).filter(({ kind }) => kind !== WitnessKind.TRANSPARENCY_LOG);
  const others = covering.filter((piece) => !asked.some(({ name }) => name === piece.witness));
  const named = [...asked, ...others.map(({ witness, kind }) => ({ name: witness, kind, required: false }))];
  return [
    logWitness(batch),
    ...named.map(({ name, kind, required }) => {
      const landed = covering.find((piece) => piece.witness === name);
      const state = states.find((candidate) => candidate.witness === name);
      const request = pending.find((candidate) => candidate.witness === name);
      return {
        name,
        kind,
        required,
        ...(landed ? landedWitness(landed) : missingWitness(request, required && isOverdue)),
        ...(!landed && request && { detail: pendingDetail(kind, request.detail, isForOperator) }),
        ...(!landed && lastErrorOf(request ?? state, isForOperator)),
      };
    }),
  ];
}

function logWitness(batch: BatchRow): WitnessInit {
  return {
    name: LOG_WITNESS_NAME,
    kind: WitnessKind.TRANSPARENCY_LOG,
    status: WitnessStatus.LANDED,
    required: true,
    landedAt: timestampFromDate(batch.registeredAt ?? batch.sealedAt),
    coversTreeSize: BigInt(batch.treeSize),
    detail: { log_index: batch.firstIndex },
  };
}

function landedWitness({ landedAt, treeSize, detail }: Omit<Covering, 'evidence'>): WitnessInit {
  return {
    status: WitnessStatus.LANDED,
    landedAt: timestampFromDate(landedAt),
    coversTreeSize: BigInt(treeSize),
    detail,
  };
}

/** A witness that has accepted a request is pending, however long it takes; one that is not required has no deadline. */
function missingWitness(request: RequestStatus | undefined, isOverdue: boolean): WitnessInit {
  const { FAILED, PENDING } = WitnessStatus;
  if (request === undefined) return { status: isOverdue ? FAILED : PENDING };
  return { status: PENDING, coversTreeSize: BigInt(request.treeSize) };
}

function lastErrorOf(
  of: RequestStatus | WitnessState | undefined,
  isForOperator: boolean,
): Pick<WitnessInit, 'lastError'> {
  const lastError = of && witnessErrorText(of, isForOperator);
  return lastError === undefined ? {} : { lastError };
}
