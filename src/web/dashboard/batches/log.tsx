import { useQuery } from '@connectrpc/connect-query';
import { lazy, Suspense } from 'preact/compat';
import { type Log as LogEpoch, LogService } from '../../../../gen/attestation/admin/v1/logs_pb.js';
import { environmentNumber } from '../../../protocol/environment.js';
import { useScope } from '../scope.js';
import { Copyable } from '../ui/copy.js';
import { count } from '../ui/count.js';
import { safe } from '../ui/safe.js';
import { ErrorState, Loading } from '../ui/states.js';
import { Time } from '../ui/time.js';
import { epochLabel } from './epoch-label.js';

const SizeChart = lazy(async () => ({ default: (await import('./size-chart.js')).SizeChart }));
const POLL_MS = 15_000;

/** The whole growth of the environment's log, its published checkpoint, and its epochs. */
export function Log() {
  const environment = environmentNumber(useScope().scope.environment);
  const logs = useQuery(LogService.method.listLogs, { environment }, { refetchInterval: POLL_MS });
  if (logs.isPending) return <Loading what="the log" />;
  if (logs.data === undefined) return <ErrorState error={logs.error} onRetry={logs.refetch} />;
  const { data: epochs } = logs.data;
  const published = newestPublished(epochs);
  if (published.length === 0) return null;
  return (
    <div class="cards">
      <section class="card" aria-labelledby="size">
        <h2 id="size">Size of the log</h2>
        <Suspense fallback={<Loading what="the chart" />}>
          <SizeChart epochs={epochs} />
        </Suspense>
      </section>
      <section class="card" aria-labelledby="checkpoint">
        <h2 id="checkpoint">Newest checkpoint</h2>
        <p class="hint">What the log has signed last. Witnesses vouch for it.</p>
        {published.map(({ origin, checkpoint }) => (
          <Copyable key={origin} label="checkpoint" text={safeLines(checkpoint)} />
        ))}
        <Epochs epochs={epochs} />
      </section>
    </div>
  );
}

/** Of each lane the newest epoch that has published a checkpoint. */
function newestPublished(epochs: readonly LogEpoch[]): LogEpoch[] {
  const published = epochs.filter(({ checkpoint }) => checkpoint !== '');
  return published.filter(({ lane }, i) => published.findIndex((one) => one.lane === lane) === i);
}

/** A checkpoint line by line: its lines are what is signed. */
function safeLines(text: string): string {
  return text.split('\n').map(safe).join('\n');
}

function Epochs({ epochs }: { epochs: LogEpoch[] }) {
  return (
    <dl>
      {epochs.map(({ origin, lane, epoch, createdAt, closedAt, frozenAt, treeSize }) => (
        <div class="pair" key={origin}>
          <dt>{epochLabel({ lane, epoch }, epochs)}</dt>
          <dd>
            <code>{safe(origin)}</code>
            <span class="sub">
              {count(treeSize, 'leaf', 'leaves')}, began <Time at={createdAt} />
              {closedAt === undefined ? null : (
                <>
                  , closed <Time at={closedAt} />
                </>
              )}
              {frozenAt === undefined ? null : (
                <>
                  , frozen <Time at={frozenAt} />
                </>
              )}
            </span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
