import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import {
  type CreateTrustRuleRequest,
  type ListTrustRulesRequest,
  ListTrustRulesRequestSchema,
  type ListTrustRulesResponse,
  ListTrustRulesResponseSchema,
  type RemoveTrustRuleRequest,
  type TrustRule,
  TrustRuleSchema,
  type TrustRuleService,
} from '../../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { EnvironmentSchema } from '../../../../gen/attestation/v1/environment_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import type { Call, Handlers } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Pool, Sql } from '../../database/connect.js';
import { changeOnce, type Idempotency } from '../../idempotency/idempotency.js';
import { changeOnceAfter } from '../../idempotency/leased-idempotency.js';
import { invalidRequest } from '../../json/problems.js';
import type { Cursors } from '../../rpc/cursor.js';
import { pageReader } from '../../rpc/list-page.js';
import { type AuditIds, recordAction } from '../audit-log.js';
import { getProject } from '../projects.js';
import { assertMayGrant } from '../session-bounds.js';
import { lockProject } from '../store/projects.js';
import {
  countTrustRules,
  findTrustRule,
  insertTrustRule,
  listTrustRules,
  removeTrustRule,
  type TrustRuleRow,
} from '../store/trust-rules.js';
import { assertIssuerCallable, readTrustRule, type TrustRuleInputDeps } from './trust-rule-input.js';

/** Dependencies of the handlers of TrustRuleService. `clock`: Unix milliseconds. */
type TrustRuleDeps = AuditIds &
  TrustRuleInputDeps & {
    pool: Pool;
    idempotency: Idempotency;
    cursors: Cursors;
    /** Called after a rule was removed, whether or not the transaction was committed. */
    onKeyChange: (trustRuleId: string) => void;
  };

const MAX_RULES = 100;

const readPage = pageReader(ListTrustRulesRequestSchema);

/** The handlers of TrustRuleService. */
export function trustRuleHandlers(deps: TrustRuleDeps): Handlers<typeof TrustRuleService> {
  const show = async (sql: Sql, id: string) => ruleMessage(await getRule(sql, id));
  return {
    getTrustRule: ({ id }) => show(deps.pool, id),
    listTrustRules: (request) => listRules(deps, request),
    createTrustRule: (request, call) =>
      changeOnceAfter(deps.idempotency, call, request, {
        prepare: () => assertIssuerCallable(deps, request.issuer),
        make: (tx) => insertRule(deps, tx, call, request),
        show,
      }),
    removeTrustRule: async (request, call) => {
      try {
        return await changeOnce(deps.idempotency, call, request, {
          make: (tx) => removeRule(deps, tx, call, request),
          show,
        });
      } finally {
        deps.onKeyChange(request.id);
      }
    },
  };
}

async function insertRule(
  deps: TrustRuleDeps,
  tx: Sql,
  call: Call,
  request: CreateTrustRuleRequest,
): Promise<string> {
  const columns = readTrustRule(deps, request);
  assertMayGrant(call, columns);
  const { id: projectId } = await getProject(tx, request.projectId);
  await lockProject(tx, projectId);
  if ((await countTrustRules(tx, projectId)) >= MAX_RULES) {
    const message = `has ${MAX_RULES} trust rules, which is the most; remove one first`;
    throw invalidRequest([{ path: '/project_id', message }]);
  }
  const id = `tru_${deps.random.ulid(deps.clock())}`;
  await insertTrustRule(tx, { id, projectId, ...columns, createdBy: call.session?.person?.id });
  const { environment, issuer, audience, conditions, scopes } = columns;
  const detail = {
    environment: enumName(EnvironmentSchema, environment),
    issuer,
    audience,
    conditions,
    scopes,
    recorded_claims: columns.recordedClaims,
    reusable_tokens: columns.reusableTokens,
  };
  const action = AuditAction.TRUST_RULE_CREATED;
  await recordAction(deps, tx, call, { action, projectId, resourceId: id, detail });
  return id;
}

async function removeRule(
  deps: TrustRuleDeps,
  tx: Sql,
  call: Call,
  { id }: RemoveTrustRuleRequest,
): Promise<string> {
  const { projectId } = await getRule(tx, id);
  if (await removeTrustRule(tx, id)) {
    const action = AuditAction.TRUST_RULE_REMOVED;
    await recordAction(deps, tx, call, { action, projectId, resourceId: id });
  }
  return id;
}

async function listRules(
  { pool, cursors }: TrustRuleDeps,
  request: ListTrustRulesRequest,
): Promise<ListTrustRulesResponse> {
  const projectId = request.projectId === '' ? undefined : request.projectId;
  const { rows, nextCursor } = await readPage(cursors, request, {
    query: ['trust rules', request.projectId],
    read: async (before, limit) => {
      if (projectId !== undefined) await getProject(pool, projectId);
      return listTrustRules(pool, { projectId, before: before?.[0], limit });
    },
    positionOf: ({ id }) => [id],
  });
  return create(ListTrustRulesResponseSchema, { data: rows.map(ruleMessage), nextCursor });
}

async function getRule(sql: Sql, id: string): Promise<TrustRuleRow> {
  const row = await findTrustRule(sql, id);
  if (row === undefined)
    throw new ApiError(ErrorCode.TRUST_RULE_NOT_FOUND, 'there is no trust rule with this id');
  return row;
}

function ruleMessage({ createdAt, removedAt, ...row }: TrustRuleRow): TrustRule {
  return create(TrustRuleSchema, {
    id: row.id,
    projectId: row.projectId,
    environment: row.environment,
    issuer: row.issuer,
    audience: row.audience,
    conditions: row.conditions,
    scopes: row.scopes,
    limits: {
      submissionsPerSecond: BigInt(row.submissionsPerSecond),
      submissionsPerHour: BigInt(row.submissionsPerHour),
      submissionsPerDay: BigInt(row.submissionsPerDay),
      readsPerSecond: BigInt(row.readsPerSecond),
    },
    recordedClaims: row.recordedClaims,
    reusableTokens: row.reusableTokens,
    createdAt: timestampFromDate(createdAt),
    ...(removedAt !== null && { removedAt: timestampFromDate(removedAt) }),
    ...(row.createdBy !== null && { createdBy: row.createdBy }),
  });
}
