/** The report of an audit that does not follow its logs. */
import { count } from '../../../proof/export/object-check.js';
import { environmentName } from '../../../protocol/environment.js';
import type { AlarmKind } from '../alarm/alarm.js';
import type { Outcome } from '../monitor.js';

/** The worst first. */
const VERDICTS: readonly AlarmKind[] = ['split_view', 'not_intact', 'stale', 'unwitnessed'];

/** The lines of a report. */
export function formatOutcomes(outcomes: readonly Outcome[], trustOrigin: string): string[] {
  return [...outcomes.flatMap(formatOutcome), '', `Trusting ${trustOrigin}`];
}

function formatOutcome({ watched, round, alarms }: Outcome): string[] {
  const { name } = watched.log.key;
  if (alarms.length > 0) return [`FAILED  ${name}`, ...alarms.map(({ message }) => `        ${message}`)];
  const { main, read = 0, confirmed = 0, troubles = [] } = round ?? {};
  const unchecked = troubles.map((trouble) => `        not compared: ${trouble}`);
  if (main === undefined || main.size === 0) return [`ok      ${name}: the log is empty`, ...unchecked];
  const { size } = main;
  const others = confirmed === 0 ? '' : ` and that of ${count(confirmed, 'more checkpoint')}`;
  return [
    `ok      ${name}: ${count(size, 'entry', 'entries')}, ${read} read now; its root${others} ${confirmed === 0 ? 'follows' : 'follow'} from them`,
    ...(main.mlDsa === 'absent' ? [`        without the log's ML-DSA-44 signature`] : []),
    ...unchecked,
  ];
}

/** The report for --json, in snake_case like the service's own JSON. */
export function outcomesJson(outcomes: readonly Outcome[], trustOrigin: string): object {
  const kinds = outcomes.flatMap(({ alarms }) => alarms.map(({ kind }) => kind));
  return {
    event: 'report',
    verdict: VERDICTS.find((kind) => kinds.includes(kind)) ?? 'intact',
    trust_roots: trustOrigin,
    logs: outcomes.map(({ watched: { log }, round, alarms, verifiedSize }) => ({
      origin: log.key.name,
      environment: environmentName(log.environment),
      checkpoint: round?.main?.envelope,
      ml_dsa_signature: round?.main?.mlDsa,
      tree_size: round?.main?.size ?? verifiedSize,
      entries_read: round?.read ?? 0,
      checkpoints_confirmed: round?.confirmed ?? 0,
      problems: alarms.map(({ message }) => message),
      not_compared: round?.troubles ?? [],
    })),
  };
}
