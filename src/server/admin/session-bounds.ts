/**
 * The bounds of a session of a project: it may make keys with the default limits, so many of them, and do what comes to
 * the same. Keys with higher limits are the operator's to give: a session only takes from them.
 */
import type { Call } from '../core/call.js';
import type { Sql } from '../database/connect.js';
import { invalidRequest } from '../json/problems.js';
import {
  type ApiKeyChange,
  type ApiKeyLimits,
  countUsableApiKeys,
  DEFAULT_LIMITS,
} from './store/api-keys.js';
import { lockProject } from './store/projects.js';

const MAX_OWN_KEYS = 100;
const LIMITS = Object.keys(DEFAULT_LIMITS) as (keyof ApiKeyLimits)[];
const HIGHER = 'a key with higher limits than the defaults';

/** Throws `request.invalid` if a session of a project would make a key with higher limits than the defaults. */
export function assertMayGrant({ session }: Call, wanted: ApiKeyLimits): void {
  if (session?.projectId === undefined) return;
  const problems = tooHigh(wanted, DEFAULT_LIMITS);
  if (problems.length > 0) throw invalidRequest(problems);
}

/**
 * Throws `request.invalid` if a session of a project would give a key higher limits than the defaults, or anything more to
 * a key that keeps higher ones.
 */
export function assertMayChange({ session }: Call, from: ApiKeyChange, to: ApiKeyChange): void {
  if (session?.projectId === undefined || !isHigher(to)) return;
  const problems = tooHigh(to, isHigher(from) ? from : DEFAULT_LIMITS);
  const more = to.scopes.filter((scope) => !from.scopes.includes(scope));
  if (more.length > 0) {
    const message = `must not add ${more.join(', ')} to ${HIGHER}; lower them, or ask the operator`;
    problems.push({ path: '/scopes', message });
  }
  if (endOf(to) > endOf(from)) {
    const message = `must not prolong ${HIGHER}; lower them, or ask the operator`;
    problems.push({ path: to.expiresAt === null ? '/never_expires' : '/expires_at', message });
  }
  if (problems.length > 0) throw invalidRequest(problems);
}

/** Throws `request.invalid` if a session of a project would get the secret of a key with higher limits than the defaults. */
export function assertMayRotate({ session }: Call, key: ApiKeyLimits): void {
  if (session?.projectId === undefined || !isHigher(key)) return;
  const message = `names ${HIGHER}, which the operator rotates; lower them first, or make another key`;
  throw invalidRequest([{ path: '/id', message }]);
}

/**
 * Throws `request.invalid` at `path` if the project has as many keys that work as its sessions may have. Locks the project,
 * so that concurrent calls count one after the other.
 */
export async function assertMayAdd(
  tx: Sql,
  { session }: Call,
  projectId: string,
  path: string,
): Promise<void> {
  if (session?.projectId === undefined) return;
  await lockProject(tx, projectId);
  if ((await countUsableApiKeys(tx, projectId)) < MAX_OWN_KEYS) return;
  const message = `would make one more than the ${MAX_OWN_KEYS} API keys that a project may have at work; revoke one, or ask the operator`;
  throw invalidRequest([{ path, message }]);
}

function isHigher(limits: ApiKeyLimits): boolean {
  return LIMITS.some((name) => limits[name] > DEFAULT_LIMITS[name]);
}

function tooHigh(wanted: ApiKeyLimits, most: ApiKeyLimits) {
  return LIMITS.filter((name) => wanted[name] > most[name]).map((name) => ({
    path: `/limits/${snakeCase(name)}`,
    message: `must be at most ${most[name]}; ask the operator for more`,
  }));
}

function endOf({ expiresAt }: Pick<ApiKeyChange, 'expiresAt'>): number {
  return expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
