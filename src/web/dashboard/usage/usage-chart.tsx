import { timestampMs } from '@bufbuild/protobuf/wkt';
import { useMemo } from 'react';
import type { Usage, UsageInWindow } from '../../../../gen/attestation/admin/v1/usage_pb.js';
import { Chart, type Series } from '../ui/chart.js';
import { type Column, DataTable } from '../ui/data-table.js';
import { Time } from '../ui/time.js';

const SHOWN = { day: 30, hour: 48 } as const;
const SECONDS = { day: 86_400, hour: 3_600 } as const;

const COLUMNS: Column<UsageInWindow>[] = [
  { id: 'start', header: 'From', cell: ({ row }) => <Time at={row.original.start} /> },
  { id: 'submissions', header: 'Submissions', cell: ({ row }) => row.original.submissions.toLocaleString() },
  { id: 'reads', header: 'Reads', cell: ({ row }) => row.original.reads.toLocaleString() },
];

/** Submissions and reads by window: a chart of each, and the figures as a table. */
export function UsageChart({ usage, window }: { usage: Usage; window: 'day' | 'hour' }) {
  const { times, submissions, reads } = useMemo(() => fill(usage.data, window), [usage.data, window]);
  return (
    <>
      <div className="cards">
        <section className="card" aria-labelledby="submissions-chart">
          <h2 id="submissions-chart">Submissions by {window}</h2>
          <Chart
            label={`Submissions by ${window}; the table below has the figures`}
            times={times}
            series={submissions}
          />
        </section>
        <section className="card" aria-labelledby="reads-chart">
          <h2 id="reads-chart">Reads by {window}</h2>
          <Chart label={`Reads by ${window}; the table below has the figures`} times={times} series={reads} />
        </section>
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
  const line = (name: string, pick: (row: UsageInWindow) => bigint, colour: Series['colour']): Series[] => [
    { name, isBars: true, colour, values: times.map((time) => numberOf(used.get(time), pick)) },
  ];
  return {
    times,
    submissions: line('Submissions', (row) => row.submissions, '--accent'),
    reads: line('Reads', (row) => row.reads, '--accent'),
  };
}

function numberOf(row: UsageInWindow | undefined, pick: (row: UsageInWindow) => bigint): number {
  return row === undefined ? 0 : Number(pick(row));
}
