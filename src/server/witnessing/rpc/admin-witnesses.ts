import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import {
  AskWitnessResponseSchema,
  ListWitnessesResponseSchema,
  type WitnessService,
  type WitnessStanding,
  WitnessStandingSchema,
} from '../../../../gen/attestation/admin/v1/witnesses_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { recordAction } from '../../admin/audit-log.js';
import type { Handlers } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { RandomSource } from '../../core/random.js';
import type { Pool, Sql } from '../../database/connect.js';
import { changeOnce, type Idempotency } from '../../idempotency/idempotency.js';
import { makeWitnessDue } from '../store/witness-leases.js';
import { readWitnessHealth, type WitnessHealth as StandingRow } from '../store/witness-status.js';
import { isOperator, witnessErrorText } from './witness-errors.js';

type WitnessDeps = { pool: Pool; idempotency: Idempotency; clock: () => number; random: RandomSource };

/** The handlers of WitnessService. */
export function witnessHandlers(deps: WitnessDeps): Handlers<typeof WitnessService> {
  return {
    listWitnesses: async (_request, call) => {
      const rows = await readWitnessHealth(deps.pool);
      return create(ListWitnessesResponseSchema, {
        data: rows.map((row) => standingMessage(row, isOperator(call))),
      });
    },
    askWitness: (request, call) =>
      changeOnce(deps.idempotency, call, request, {
        make: async (tx) => {
          await getStandings(tx, request.name);
          await makeWitnessDue(tx, request.name);
          await recordAction(deps, tx, call, { action: AuditAction.WITNESS_ASKED, resourceId: request.name });
          return request.name;
        },
        show: async (sql, name) => {
          const standings = await getStandings(sql, name);
          return create(AskWitnessResponseSchema, {
            data: standings.map((row) => standingMessage(row, true)),
          });
        },
      }),
  };
}

/** Reads the standings of one witness, one per log. Throws `witness.not_found`. */
async function getStandings(sql: Sql, name: string): Promise<StandingRow[]> {
  const standings = (await readWitnessHealth(sql)).filter(({ witness }) => witness === name);
  if (standings.length === 0)
    throw new ApiError(ErrorCode.WITNESS_NOT_FOUND, 'no policy in force names this witness');
  return standings;
}

function standingMessage(row: StandingRow, isForOperator: boolean): WitnessStanding {
  const { lastSuccessAt, lastFailedAt, oldestRequestAt } = row;
  return create(WitnessStandingSchema, {
    log: row.origin,
    environment: row.environment,
    name: row.witness,
    kind: row.kind,
    required: row.required,
    coveredTreeSize: BigInt(row.coversTreeSize),
    publishedTreeSize: BigInt(row.publishedTreeSize),
    ...(lastSuccessAt === null ? {} : { lastSuccessAt: timestampFromDate(lastSuccessAt) }),
    consecutiveFailures: row.failures,
    ...(lastFailedAt === null ? {} : { lastFailedAt: timestampFromDate(lastFailedAt) }),
    lastError: witnessErrorText(row, isForOperator) ?? '',
    nextAttemptAt: timestampFromDate(row.nextAttemptAt),
    beingAsked: row.isAsked,
    pendingRequests: row.pendingRequests,
    ...(oldestRequestAt === null ? {} : { oldestRequestAt: timestampFromDate(oldestRequestAt) }),
  });
}
