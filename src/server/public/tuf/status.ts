import type { Sql } from '../../database/connect.js';
import type { TufMetadata, TufRole, TufTarget } from './metadata.js';
import { findNewest, findTufTargets, type Newest } from './store.js';

/** The repository: its newest metadata, its files, and what an operator has to do. */
export type TufStatus = {
  readonly newest: Newest | undefined;
  readonly published: readonly TufTarget[];
  /** Whether the files differ from what the trust roots give now. */
  readonly isOutdated: boolean;
  readonly remarks: readonly string[];
};

/** The roles, in the order of trust. */
export const TUF_ROLES: readonly TufRole[] = ['root', 'targets', 'snapshot', 'timestamp'];

const DAY_MS = 86_400_000;
const WARN_BEFORE_MS: Record<TufRole, number> = {
  root: 60 * DAY_MS,
  targets: 60 * DAY_MS,
  snapshot: 3 * DAY_MS,
  timestamp: 3 * DAY_MS,
};

/** When clients stop accepting metadata. */
export function expiryOf({ signed }: TufMetadata[TufRole]): Date {
  return new Date(signed.expires);
}

/** Reads the repository. `current`: the files as the trust roots are now. */
export async function readTufStatus(
  sql: Sql,
  current: readonly TufTarget[],
  nowMs: number,
): Promise<TufStatus> {
  const newest = await findNewest(sql);
  if (newest === undefined) return { newest, published: [], isOutdated: false, remarks: [] };
  const published = await findTufTargets(sql, newest.targets);
  const differing = current.filter(
    ({ name, content }) => published.find((one) => one.name === name)?.content !== content,
  );
  const outdated = differing.map(
    ({ name }) => `${name} differs from the trust roots: run attest tuf publish`,
  );
  const expiring = TUF_ROLES.filter(
    (role) => expiryOf(newest[role]).getTime() - nowMs < WARN_BEFORE_MS[role],
  );
  const remarks = [...outdated, ...expiring.map((role) => expiryRemark(role, newest[role], nowMs))];
  return { newest, published, isOutdated: differing.length > 0, remarks };
}

function expiryRemark(role: TufRole, metadata: TufMetadata[TufRole], nowMs: number): string {
  const expiry = expiryOf(metadata);
  const verb = expiry.getTime() <= nowMs ? 'expired' : 'expires';
  const isOffline = role === 'root' || role === 'targets';
  const todo = isOffline ? 'run attest tuf publish' : 'no worker with its key in TUF_KEY_FILE renews it';
  return `${role} ${verb} at ${expiry.toISOString()}: ${todo}`;
}
