/** Whether a log shows anything new, and whether enough witnesses have seen it. */
import type { Alarm } from '../alarm/alarm.js';
import type { SeenCheckpoint } from '../checkpoint/seen-checkpoint.js';
import type { Demands } from '../watched-log.js';

/** The newest verified checkpoint. */
type Newest = {
  readonly origin: string;
  /** All checkpoints of the newest tree; none if the log is empty or was never reached. */
  readonly checkpoints: readonly SeenCheckpoint[];
  /** When the tree was first seen, or else when the audit began. */
  readonly since: Date;
  readonly isReachable: boolean;
  /** When the log ends: nothing new is expected then. */
  readonly closedAt: Date | undefined;
};

/** When a log last showed something new: a larger tree, or a cosignature. */
export function freshAt({ checkpoints, since }: Newest, now: Date): Date {
  const cosigned = checkpoints.flatMap((one) => one.cosigned.map(({ seconds }) => seconds * 1000));
  return new Date(Math.max(since.getTime(), ...cosigned.filter((ms) => ms <= now.getTime())));
}

/** Raises the alarms about age and witnesses. `isOverdue` says whether cosignatures had time to come. */
export function checkFreshness(
  newest: Newest,
  { maxAgeMs, isQuorum }: Demands,
  { now, isOverdue }: { now: Date; isOverdue: (what: string) => boolean },
): Alarm[] {
  const { origin, checkpoints, isReachable, closedAt } = newest;
  const alarms: Alarm[] = [];
  const at = freshAt(newest, now);
  const isOpen = closedAt === undefined || closedAt > now;
  if (isOpen && maxAgeMs !== undefined && now.getTime() - at.getTime() > maxAgeMs) {
    const silent = isReachable ? '' : 'it cannot be reached, and ';
    const message = `${silent}it has shown nothing new since ${at.toISOString()}`;
    alarms.push({ kind: 'stale', origin, message, subject: at.toISOString() });
  }
  const [first] = checkpoints;
  const all = checkpoints.flatMap(({ cosigned }) => cosigned);
  const names = new Set(all.map(({ name }) => name));
  const isMissed = first !== undefined && first.size > 0 && isQuorum !== undefined && !isQuorum(all);
  if (isMissed && isOverdue(`quorum ${first.note.text}`)) {
    const who = names.size === 0 ? 'no witness' : `only ${[...names].join(', ')}`;
    const message = `its checkpoint of ${first.size} entries is cosigned by ${who}`;
    alarms.push({ kind: 'unwitnessed', origin, message, subject: 'quorum' });
  }
  return alarms;
}
