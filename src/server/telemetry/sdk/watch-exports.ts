import type { ExportResult } from '@opentelemetry/core';

/** Learns whether exports reach the collector. */
export type ExportReport = { failed: (reason: string) => void; recovered: () => void };

type Exporter<T> = { export: (items: T, done: (result: ExportResult) => void) => void };

/** Makes an exporter report the outcome of each export. The SDK would keep a failure to itself. */
export function watchExports<T>(exporter: Exporter<T>, report: ExportReport): void {
  const send = exporter.export.bind(exporter);
  exporter.export = (items, done) =>
    send(items, (result) => {
      if (result.error === undefined && result.code === 0) report.recovered();
      else report.failed(result.error?.message ?? 'the export failed');
      done(result);
    });
}
