import type { Pool } from '../database/connect.js';
import { type ExportTotals, readExportTotals } from '../exports/store/export-status.js';
import { shared } from './gauges.js';
import type { Metrics } from './metrics.js';

const GAUGES: readonly { name: string; help: string; of: (totals: ExportTotals) => number }[] = [
  {
    name: 'attest_exports_active',
    help: 'Exports that ship',
    of: ({ active }) => active,
  },
  {
    name: 'attest_exports_failing',
    help: 'Exports whose destination has failed for 24 hours',
    of: ({ failing }) => failing,
  },
  {
    name: 'attest_export_lag_batches',
    help: 'Settled batches that are not shipped, of the 200 exports that wait longest, 1,000 of each at most',
    of: ({ lagBatches }) => lagBatches,
  },
  {
    name: 'attest_export_lag_seconds',
    help: 'Age of the oldest of those batches',
    of: ({ lagSeconds }) => lagSeconds,
  },
  {
    name: 'attest_export_failures_in_a_row',
    help: 'Attempts that failed since the last success, of the export with most',
    of: ({ failures }) => failures,
  },
];

/** Adds the gauges of exports. Reads their tables once per scrape. `spooled`: the bytes in this process's temporary files. */
export function addExportGauges(metrics: Metrics, pool: Pool, spooled: () => number): void {
  metrics.addGauge({
    name: 'attest_export_spool_bytes',
    help: 'Bytes in the temporary files of objects that are being shipped, of EXPORT_SPOOL_MIB at most',
    read: async () => spooled(),
  });
  const totals = shared(() => readExportTotals(pool));
  for (const { name, help, of } of GAUGES)
    metrics.addGauge({ name, help, read: async () => of(await totals()) });
}

/** Adds the counters of shipped objects, and returns the function that counts them. */
export function shipmentCounters(metrics: Metrics): (shipped: { outcome: string; bytes: number }) => void {
  const objects = metrics.addCounter(
    'attest_export_objects_total',
    'Objects of exports, by outcome of the attempt',
    ['outcome'],
  );
  const bytes = metrics.addCounter(
    'attest_export_shipped_bytes_total',
    'Bytes of the objects that were written',
  );
  return (shipped) => {
    objects.add(1, { outcome: shipped.outcome });
    bytes.add(shipped.bytes);
  };
}
