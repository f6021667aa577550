/** The principal of an API key as text. */

import { BucketSchema } from '../../../gen/attestation/options/v1/options_pb.js';
import { EnvironmentSchema } from '../../../gen/attestation/v1/environment_pb.js';
import type { Me } from '../../../gen/attestation/v1/service_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { printable } from '../../protocol/printable.js';
import { timeText } from './time-text.js';

/** Who the key is: its project, itself, its scopes and its expiry, as rows of a name and a value. */
export function principalRows({
  project,
  apiKey: key,
  scopes,
  identity,
}: Me): [name: string, value: string][] {
  return [
    ['project', `${printable(project?.name ?? '')} (${project?.id})`],
    ['environment', key === undefined ? '-' : enumName(EnvironmentSchema, key.environment)],
    ['key', `${key?.prefix}…${key?.last4} (${key?.id})`],
    ['scopes', scopes.map(printable).join(' ')],
    ...(identity === undefined ? [] : identityRows(identity)),
    ['expires', key?.expiresAt === undefined ? 'never' : timeText(key.expiresAt)],
  ];
}

function identityRows({ issuer, subject, claims }: NonNullable<Me['identity']>): [string, string][] {
  return [
    ['issuer', printable(issuer)],
    ['subject', printable(subject)],
    ...Object.entries(claims).map(([name, value]): [string, string] => [printable(name), printable(value)]),
  ];
}

/** What the key has used and what its rate limits leave, as rows of a name and a value. */
export function usageRows({ usage, rateLimits }: Me): [name: string, value: string][] {
  return [
    ['submissions', `${usage?.submissionsLast24h ?? 0n} in the last 24 h`],
    ['reads', `${usage?.readsLast24h ?? 0n} in the last 24 h`],
    ...rateLimits.map(({ bucket, windowSeconds, limit, remaining }): [string, string] => [
      'limit',
      `${remaining} of ${limit} ${enumName(BucketSchema, bucket)} left in ${windowSeconds} s`,
    ]),
  ];
}
