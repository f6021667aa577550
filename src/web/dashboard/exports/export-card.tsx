import { useQuery } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import {
  DestinationKindSchema,
  type Export,
  ExportService,
  ExportStatus,
  ExportStatusSchema,
} from '../../../../gen/attestation/v1/exports_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { Button } from '../ui/button.js';
import { Confirm } from '../ui/confirm.js';
import { safe } from '../ui/safe.js';
import { ErrorState } from '../ui/states.js';
import { Status, type Tone } from '../ui/status.js';
import { Time } from '../ui/time.js';
import { useChange } from '../use-change.js';
import { ExportHistory } from './export-history.js';

const POLL_MS = 5_000;
const TONES: Partial<Record<ExportStatus, Tone>> = {
  [ExportStatus.ACTIVE]: 'good',
  [ExportStatus.FAILING]: 'bad',
};

/** One export: its status, its lag and its history. */
export function ExportCard({ listed }: { listed: Export }) {
  const { data } = useQuery(ExportService.method.getExport, { id: listed.id }, { refetchInterval: POLL_MS });
  const one = data ?? listed;
  const isRetrying = one.consecutiveFailures > 0;
  return (
    <section class="card" aria-label={`Export ${one.id}`}>
      <div class="head">
        <div>
          <h2>{placeOf(one)}</h2>
          <p>
            <code>{one.id}</code>
          </p>
        </div>
        <Status tone={isRetrying ? 'bad' : (TONES[one.status] ?? 'plain')}>
          {enumName(ExportStatusSchema, one.status)}
        </Status>
      </div>
      <Facts one={one} />
      {one.lastError ? <p class="notice">{safe(one.lastError)}</p> : null}
      {one.status === ExportStatus.STOPPED ? null : <Actions id={one.id} />}
      <ExportHistory deliveries={one.recentDeliveries} />
    </section>
  );
}

function placeOf({ destination }: Export): string {
  if (destination === undefined) return '';
  const { kind, url, endpoint, accountUrl, bucket, container, prefix } = destination;
  const place = [url ?? endpoint ?? accountUrl, bucket ?? container, prefix].filter(Boolean).join('/');
  return `${enumName(DestinationKindSchema, kind)} ${safe(place)}`;
}

function Facts({ one }: { one: Export }) {
  return (
    <dl>
      <dt>Lag</dt>
      <dd>
        {one.lagBatches === 0 ? 'none' : `${one.lagBatches} batches, ${one.lagSeconds.toLocaleString()} s`}
      </dd>
      <dt>Shipped</dt>
      <dd>through {one.shippedThrough.toLocaleString()} leaves of the log</dd>
      {one.consecutiveFailures === 0 ? null : (
        <>
          <dt>Failures</dt>
          <dd>
            {one.consecutiveFailures} in a row, since <Time at={one.failingSince} />; next attempt{' '}
            <Time at={one.nextAttemptAt} />
          </dd>
        </>
      )}
      <dt>Created</dt>
      <dd>
        <Time at={one.createdAt} />
      </dd>
    </dl>
  );
}

function Actions({ id }: { id: string }) {
  const [isStopping, setStopping] = useState(false);
  const test = useChange(ExportService.method.testExport);
  const stop = useChange(ExportService.method.deleteExport);
  const close = () => setStopping(false);
  return (
    <>
      <div class="row">
        <Button
          calls={ExportService.method.testExport}
          disabled={test.isPending}
          onClick={() => test.mutate({ id })}
        >
          {test.isPending ? 'Testing…' : 'Test the destination'}
        </Button>
        <Button isDanger calls={ExportService.method.deleteExport} onClick={() => setStopping(true)}>
          Stop
        </Button>
        <span role="status">{test.isSuccess ? 'The destination can be written.' : ''}</span>
      </div>
      {test.error === null ? null : <ErrorState error={test.error} />}
      {isStopping ? (
        <Confirm
          title="Stop the export?"
          action="Stop it"
          change={stop}
          onClose={close}
          onConfirm={() => stop.mutate({ id }, { onSuccess: close })}
        >
          <p>
            Nothing more is written, and its credentials are erased. What was written stays. This cannot be
            undone.
          </p>
        </Confirm>
      ) : null}
    </>
  );
}
