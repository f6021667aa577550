/** The alarms of an audit. */
import { toHex, utf8 } from '../../../proof/bytes/encoding.js';
import { sha256 } from '../../../proof/bytes/primitives.js';
import type { ProvenPrefix } from '../../../proof/log/prefix.js';
import { type SeenCheckpoint, vouchersOfBoth } from '../checkpoint/seen-checkpoint.js';

/**
 * - `split_view`: two signed checkpoints contradict each other.
 * - `not_intact`: the log is not what it has signed, or lacks it.
 * - `stale`: no new checkpoint, or none at all, for too long.
 * - `unwitnessed`: too few witnesses have cosigned the checkpoint.
 */
export type AlarmKind = 'split_view' | 'not_intact' | 'stale' | 'unwitnessed';

/**
 * Two signed notes. With `prefix` the second one's tree has that root at the first one's size, which is another; without,
 * the two are of one size, or do not contradict each other by themselves.
 */
export type Evidence = {
  readonly first: SeenCheckpoint;
  readonly second: SeenCheckpoint;
  readonly prefix?: ProvenPrefix;
};

/** An alarm about one log. */
export type Alarm = {
  readonly kind: AlarmKind;
  readonly origin: string;
  readonly message: string;
  readonly evidence?: Evidence;
  /** The identity of the alarm; the message by default. */
  readonly subject?: string;
};

/** Exit code of each alarm, the worst first. */
const ALARM_EXIT_CODES = { split_view: 3, not_intact: 1, stale: 4, unwitnessed: 4 } as const;

/** Identifies an alarm: the same one, raised again, has the same id. */
export function alarmId({ kind, origin, message, subject = message }: Alarm): string {
  return toHex(sha256(utf8(JSON.stringify([kind, origin, subject])))).slice(0, 32);
}

/** The alarm about two checkpoints that are not of one log; `odd` is the one of them that contradicts what was known. */
export function splitView(
  first: SeenCheckpoint,
  second: SeenCheckpoint,
  { odd, prefix }: { odd: SeenCheckpoint; prefix?: ProvenPrefix },
): Alarm {
  const both = vouchersOfBoth(first, second);
  const who =
    both.length === 0
      ? 'different signers have'
      : `${both.join(' and ')} ${both.length === 1 ? 'has' : 'have'}`;
  const what =
    prefix === undefined
      ? `two checkpoints of size ${first.size} with different roots`
      : `two checkpoints, of size ${first.size} and ${second.size}, of which one is not the beginning of the other`;
  return {
    kind: 'split_view',
    origin: first.origin,
    message: `${who} signed ${what}: ${first.from} and ${second.from}`,
    evidence: { first, second, ...(prefix && { prefix }) },
    subject: odd.note.text,
  };
}

/** The exit code of alarms: that of the worst; 0 without any. */
export function exitCodeOf(alarms: readonly Pick<Alarm, 'kind'>[]): number {
  const kinds = Object.keys(ALARM_EXIT_CODES) as AlarmKind[];
  const worst = kinds.find((kind) => alarms.some((alarm) => alarm.kind === kind));
  return worst === undefined ? 0 : ALARM_EXIT_CODES[worst];
}
