/** People, their roles, invitations and role rules as text. */
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import type {
  Invitation,
  Member,
  RemoveMemberResponse,
  RoleRule,
} from '../../../../gen/attestation/admin/v1/people_pb.js';
import { type Role, RoleSchema } from '../../../../gen/attestation/options/v1/options_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { printable } from '../../../protocol/printable.js';
import { formatTable } from '../table.js';
import { conditionsText } from '../trust-text.js';
import { personText } from './person-text.js';

/** Roles as a table, one per line. */
export function memberTable(members: readonly Member[]): string {
  const cells = members.map((member) => [
    member.person?.id ?? '-',
    personText(member.person),
    roleText(member.role),
    member.projectId || '-',
    sourceText(member),
    minute(member.signedInAt),
  ]);
  return formatTable([['ID', 'PERSON', 'ROLE', 'PROJECT', 'BY', 'SIGNED IN'], ...cells]);
}

/** Invitations as a table, one per line. */
export function invitationTable(invitations: readonly Invitation[]): string {
  const cells = invitations.map(({ id, email, role, projectId, createdBy, expiresAt }) => [
    id,
    printable(email) || 'whoever has the link',
    roleText(role),
    projectId || '-',
    personText(createdBy),
    minute(expiresAt),
  ]);
  return formatTable([['ID', 'FOR', 'ROLE', 'PROJECT', 'MADE BY', 'ENDS'], ...cells]);
}

/** Role rules as a table, one per line. */
export function roleRuleTable(rules: readonly RoleRule[]): string {
  const cells = rules.map((rule) => [
    rule.id,
    conditionsText(rule),
    roleText(rule.role),
    rule.projectId || '-',
    personText(rule.createdBy),
  ]);
  return formatTable([['ID', 'CONDITIONS', 'ROLE', 'PROJECT', 'MADE BY'], ...cells]);
}

/** What somebody has after a change of his role. */
export function memberText(member: Member): string {
  return `${personText(member.person)} is ${roleText(member.role)} now, by ${sourceText(member)}`;
}

/** What was taken from somebody, and what stays. */
export function removedText(
  id: string,
  { removed, ruleIds, apiKeyIds, trustRuleIds }: RemoveMemberResponse,
  isRevoked: boolean,
): string {
  const made = [...apiKeyIds, ...trustRuleIds].join(' ');
  const lines = [removed ? `${id} is removed` : `${id} had no role there`];
  if (ruleIds.length > 0)
    lines.push(`rules that give a role again at the next sign-in: ${ruleIds.join(' ')}`);
  if (made !== '' && isRevoked) lines.push(`revoked keys and trust rules that this person had made: ${made}`);
  if (made !== '' && !isRevoked)
    lines.push(
      `keys and trust rules that this person has made stay in force: ${made}`,
      'the same command with --revoke-credentials revokes them',
    );
  return lines.join('\n');
}

function sourceText({ invitedAs, ruleIds }: Member): string {
  return [...(invitedAs === undefined || invitedAs === 0 ? [] : ['invitation']), ...ruleIds].join(' ') || '-';
}

function roleText(role: Role): string {
  return enumName(RoleSchema, role);
}

function minute(at: Timestamp | undefined): string {
  return at === undefined ? '-' : `${timestampDate(at).toISOString().slice(0, 16)}Z`;
}
