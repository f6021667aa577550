import { timestampMs } from '@bufbuild/protobuf/wkt';
import { useMemo } from 'preact/hooks';
import type { Log } from '../../../../gen/attestation/admin/v1/logs_pb.js';
import { Chart, type Series } from '../ui/chart.js';
import { count } from '../ui/count.js';
import { epochLabel } from './epoch-label.js';

/** The size of the log from its first batch on, a line for each epoch. */
export function SizeChart({ epochs }: { epochs: Log[] }) {
  const { times, series } = useMemo(() => linesOf(epochs.toReversed()), [epochs]);
  const { lane = 1, epoch = 1, treeSize = 0n } = epochs[0] ?? {};
  const label = `${epochLabel({ lane, epoch }, epochs)} of the log has grown to ${count(treeSize, 'leaf', 'leaves')}; the epochs are listed beside`;
  return <Chart label={label} times={times} series={series} />;
}

/** All times of all epochs, ascending, and of each epoch the sizes at its own times. */
function linesOf(epochs: Log[]): { times: number[]; series: Series[] } {
  const sizes = epochs.map(
    ({ sizes }) => new Map(sizes.map(({ sealedAt, treeSize }) => [secondsOf(sealedAt), Number(treeSize)])),
  );
  const times = [...new Set(sizes.flatMap((one) => [...one.keys()]))].sort((a, b) => a - b);
  const series = epochs.map(
    (log, i): Series => ({
      name: epochs.length === 1 ? 'Leaves' : `Leaves of ${epochLabel(log, epochs).toLowerCase()}`,
      as: 'steps',
      colour: log.closedAt === undefined ? '--accent' : '--muted',
      values: times.map((time) => sizes[i]?.get(time) ?? null),
    }),
  );
  return { times, series };
}

function secondsOf(at: Log['sizes'][number]['sealedAt']): number {
  return at === undefined ? 0 : timestampMs(at) / 1000;
}
