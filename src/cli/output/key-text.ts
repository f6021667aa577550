/** API keys as text. */
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { type ApiKey, ApiKeyStatus } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { printable } from '../../protocol/printable.js';
import { personText } from './people/person-text.js';
import { formatTable } from './table.js';

/** Keys as a table, one per line. */
export function keyTable(keys: readonly ApiKey[]): string {
  const hasMakers = keys.some(({ createdBy }) => createdBy !== undefined);
  const head = [
    'ID',
    'KEY',
    'NAME',
    'PROJECT',
    'CREATED',
    'LAST USED',
    'STATE',
    ...(hasMakers ? ['BY'] : []),
  ];
  const cells = keys.map((key) => [
    key.id,
    `${key.prefix}…${key.last4}`,
    printable(key.name),
    key.projectId,
    day(key.createdAt),
    day(key.lastUsedAt),
    stateOf(key),
    ...(hasMakers ? [personText(key.createdBy)] : []),
  ]);
  return formatTable([head, ...cells]);
}

/** All fields of one key. */
export function keyText(key: ApiKey): string {
  return formatTable([
    ['id', key.id],
    ['key', `${key.prefix}…${key.last4}`],
    ['name', printable(key.name)],
    ['project', key.projectId],
    ['scopes', key.scopes.join(' ') || 'none but service:read'],
    ...limitRows(key.limits),
    ['created', time(key.createdAt)],
    ...(key.createdBy === undefined ? [] : [['created by', personText(key.createdBy)]]),
    ['last used', time(key.lastUsedAt)],
    ['state', stateOf(key)],
    ...(key.successorId === undefined ? [] : [['successor', key.successorId]]),
  ]);
}

/** Limits as rows of a name and a value. */
export function limitRows(limits: ApiKey['limits']): [name: string, value: string][] {
  const submissions = [
    `${limits?.submissionsPerSecond ?? 0n}/s`,
    `${limits?.submissionsPerHour ?? 0n}/h`,
    `${limits?.submissionsPerDay ?? 0n}/day`,
  ];
  return [
    ['submissions', submissions.join(', ')],
    ['reads', `${limits?.readsPerSecond ?? 0n}/s`],
  ];
}

function stateOf({ status, revokedAt, expiresAt }: ApiKey): string {
  if (status === ApiKeyStatus.REVOKED) return `revoked ${day(revokedAt)}`;
  if (status === ApiKeyStatus.EXPIRED) return `expired ${day(expiresAt)}`;
  return expiresAt === undefined ? 'active' : `active until ${time(expiresAt)}`;
}

function time(at: Timestamp | undefined): string {
  return at === undefined ? '-' : `${timestampDate(at).toISOString().slice(0, 19)}Z`;
}

function day(at: Timestamp | undefined): string {
  return time(at).slice(0, 10);
}
