/** Trust rules as text. */
import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { TrustRule } from '../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { EnvironmentSchema } from '../../../gen/attestation/v1/environment_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { printable } from '../../protocol/printable.js';
import { limitRows } from './key-text.js';
import { personText } from './people/person-text.js';
import { formatTable } from './table.js';

/** Rules as a table, one per line. */
export function ruleTable(rules: readonly TrustRule[]): string {
  const hasMakers = rules.some(({ createdBy }) => createdBy !== undefined);
  const head = [
    'ID',
    'ENVIRONMENT',
    'ISSUER',
    'CONDITIONS',
    'PROJECT',
    'CREATED',
    ...(hasMakers ? ['BY'] : []),
  ];
  const cells = rules.map((rule) => [
    rule.id,
    enumName(EnvironmentSchema, rule.environment),
    printable(rule.issuer),
    conditionsText(rule),
    rule.projectId,
    timeOf(rule.createdAt).slice(0, 10),
    ...(hasMakers ? [personText(rule.createdBy)] : []),
  ]);
  return formatTable([head, ...cells]);
}

/** All fields of one rule. */
export function ruleText(rule: TrustRule): string {
  return formatTable([
    ['id', rule.id],
    ['project', rule.projectId],
    ['environment', enumName(EnvironmentSchema, rule.environment)],
    ['issuer', printable(rule.issuer)],
    ['audience', printable(rule.audience) || 'the address of the service'],
    ['conditions', conditionsText(rule)],
    ['scopes', rule.scopes.join(' ') || 'none but service:read'],
    ...limitRows(rule.limits),
    ['records', rule.recordedClaims.map(printable).join(' ')],
    ['tokens', rule.reusableTokens ? 'may be exchanged again' : 'are exchanged once'],
    ['created', timeOf(rule.createdAt)],
    ...(rule.createdBy === undefined ? [] : [['created by', personText(rule.createdBy)]]),
    ['state', rule.removedAt === undefined ? 'in force' : `removed ${timeOf(rule.removedAt)}`],
  ]);
}

/** The conditions of a rule, by the names of their claims. */
export function conditionsText({ conditions }: Pick<TrustRule, 'conditions'>): string {
  const texts = Object.entries(conditions).map(([name, pattern]) => printable(`${name}=${pattern}`));
  return texts.sort().join(' ');
}

function timeOf(at: TrustRule['createdAt']): string {
  return at === undefined ? '-' : `${timestampDate(at).toISOString().slice(0, 19)}Z`;
}
