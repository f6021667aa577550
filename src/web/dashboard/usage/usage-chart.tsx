import { timestampMs } from '@bufbuild/protobuf/wkt';
import { useMemo } from 'preact/hooks';
import type { Usage, UsageInWindow } from '../../../../gen/attestation/admin/v1/usage_pb.js';
import { type Column, DataTable } from '../ui/data-table.js';
import { Time } from '../ui/time.js';
import { LimitChart } from './limit-chart.js';

const SHOWN = { day: 30, hour: 48 } as const;
const SECONDS = { day: 86_400, hour: 3_600 } as const;

const COLUMNS: Column<UsageInWindow>[] = [
  { header: 'From', cell: (row) => <Time at={row.start} /> },
  { header: 'Submissions', cell: (row) => row.submissions.toLocaleString() },
  { header: 'Reads', cell: (row) => row.reads.toLocaleString() },
];

/** What active keys may do together, or one of them: `owner` says which. */
export type WindowLimits = { submissions: number; reads: number; owner: string };

type Props = { usage: Usage; window: 'day' | 'hour'; limits: WindowLimits };

/** Submissions and reads by window: a chart of each against its limit, and the figures as a table. */
export function UsageChart({ usage, window, limits }: Props) {
  const { times, submissions, reads } = useMemo(() => fill(usage.data, window), [usage.data, window]);
  const shared = { window, times, owner: limits.owner };
  return (
    <>
      <div class="cards">
        <LimitChart {...shared} what="Submissions" used={submissions} limit={limits.submissions} />
        <LimitChart {...shared} what="Reads" used={reads} limit={limits.reads} />
      </div>
      {usage.data.length === 0 ? null : (
        <DataTable
          label={`Usage by ${window}`}
          columns={COLUMNS}
          data={usage.data}
          idOf={(row) => String(secondOf(row))}
        />
      )}
    </>
  );
}

function secondOf({ start }: UsageInWindow): number {
  return start === undefined ? 0 : timestampMs(start) / 1000;
}

/** Every window up to now, those without use with zeros. */
function fill(data: UsageInWindow[], window: 'day' | 'hour') {
  const seconds = SECONDS[window];
  const now = Math.floor(Date.now() / 1000 / seconds) * seconds;
  const times = Array.from({ length: SHOWN[window] }, (_, i) => now - (SHOWN[window] - 1 - i) * seconds);
  const used = new Map(data.map((row) => [secondOf(row), row]));
  return {
    times,
    submissions: times.map((time) => numberOf(used.get(time), (row) => row.submissions)),
    reads: times.map((time) => numberOf(used.get(time), (row) => row.reads)),
  };
}

function numberOf(row: UsageInWindow | undefined, pick: (row: UsageInWindow) => bigint): number {
  return row === undefined ? 0 : Number(pick(row));
}
