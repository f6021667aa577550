import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Command } from 'commander';
import { SCOPES } from '../../protocol/scopes.js';
import { type Cli, UsageError } from '../cli.js';
import type { AdminFlags } from './admin-flags.js';
import { parseDuration } from './flag-values.js';

/** Flags for a key's name, scopes, expiry and rate limits. */
export type KeyFlags = AdminFlags & LimitFlags & { name?: string; scope?: string[]; expires?: string };

/** Flags for rate limits. */
export type LimitFlags = {
  submissionsPerSecond?: string;
  submissionsPerHour?: string;
  submissionsPerDay?: string;
  readsPerSecond?: string;
};

/** Adds the flags for scopes, expiry and rate limits; the help of a new key's flags states their defaults. */
export function addKeyFlags(command: Command, { isNew }: { isNew: boolean }): Command {
  const byDefault = (value: string) => (isNew ? ` (default: ${value})` : '');
  const withRights = command
    .option(
      '--scope <scope...>',
      `scopes to grant, of ${SCOPES.join(', ')}${byDefault('all')}; each key has service:read`,
    )
    .option('--expires <duration>', `lifetime from now, such as 90d, or never${byDefault('never')}`);
  return addLimitFlags(withRights, { isNew });
}

/** Adds the flags for rate limits; the help of a new key's flags states their defaults. */
export function addLimitFlags(command: Command, { isNew }: { isNew: boolean }): Command {
  const byDefault = (value: string) => (isNew ? ` (default: ${value})` : '');
  return command
    .option('--submissions-per-second <count>', `submissions per second${byDefault('60')}`)
    .option('--submissions-per-hour <count>', `submissions per hour${byDefault('10000')}`)
    .option('--submissions-per-day <count>', `submissions per day${byDefault('100000')}`)
    .option('--reads-per-second <count>', `reads per second${byDefault('600')}`);
}

/** Adds the flags for the limits over all keys of a project. */
export function addProjectLimitFlags(command: Command): Command {
  return command
    .option('--submissions-per-second <count>', 'submissions per second, of all its keys together')
    .option('--submissions-per-hour <count>', 'the same per hour')
    .option('--submissions-per-day <count>', 'the same per day')
    .option('--reads-per-second <count>', 'reads per second, of all its keys together')
    .option('--default-limits', 'five times the highest limit of one of its keys, where no other is given');
}

/** The limits for a request; omits those not given. Throws UsageError. */
export function limitFields(flags: LimitFlags) {
  return {
    ...parseLimit(flags, 'submissionsPerSecond', '--submissions-per-second'),
    ...parseLimit(flags, 'submissionsPerHour', '--submissions-per-hour'),
    ...parseLimit(flags, 'submissionsPerDay', '--submissions-per-day'),
    ...parseLimit(flags, 'readsPerSecond', '--reads-per-second'),
  };
}

/** Name, scopes and limits for a request; omits those not given. */
export function keyFields(flags: KeyFlags) {
  return {
    limits: limitFields(flags),
    ...(flags.scope !== undefined && { scopes: flags.scope }),
    ...(flags.name !== undefined && { name: flags.name }),
  };
}

type CountFlag = 'submissionsPerSecond' | 'submissionsPerHour' | 'submissionsPerDay' | 'readsPerSecond';

function parseLimit(flags: LimitFlags, name: CountFlag, flag: string): { [K in CountFlag]?: bigint } {
  const text = flags[name];
  if (text === undefined) return {};
  if (!/^\d{1,10}$/.test(text)) throw new UsageError(`${flag} is not a whole number`);
  return { [name]: BigInt(text) };
}

/** The `expiry` of an update request; empty if --expires is not given. */
export function expiryChange(cli: Cli, { expires }: KeyFlags) {
  if (expires === undefined) return {};
  const expiresAt = parseExpiry(cli, expires);
  return expiresAt === undefined
    ? { expiry: { case: 'neverExpires', value: true } as const }
    : { expiry: { case: 'expiresAt', value: expiresAt } as const };
}

/** Parses --expires: a duration from now. Returns undefined for `never`. Throws UsageError. */
export function parseExpiry({ now }: Cli, text: string | undefined): Timestamp | undefined {
  if (text === undefined || text === 'never') return undefined;
  return timestampFromMs(now().getTime() + parseDuration('--expires', text, '1m', '3650d'));
}
