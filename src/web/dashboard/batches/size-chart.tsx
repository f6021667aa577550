import { timestampMs } from '@bufbuild/protobuf/wkt';
import { useMemo } from 'react';
import type { Batch } from '../../../../gen/attestation/v1/batches_pb.js';
import { Chart, type Series } from '../ui/chart.js';

/** The size of the log at each batch that is listed. */
export function SizeChart({ batches }: { batches: Batch[] }) {
  const { times, series } = useMemo(() => {
    const ascending = batches.toReversed().filter(({ sealedAt }) => sealedAt !== undefined);
    const sizes: Series = {
      name: 'Leaves',
      values: ascending.map(({ treeSize }) => Number(treeSize)),
      colour: '--accent',
    };
    return {
      times: ascending.map(({ sealedAt }) => (sealedAt === undefined ? 0 : timestampMs(sealedAt) / 1000)),
      series: [sizes],
    };
  }, [batches]);
  const last = batches[0]?.treeSize ?? 0n;
  return (
    <Chart label={`The log has grown to ${last.toLocaleString()} leaves`} times={times} series={series} />
  );
}
