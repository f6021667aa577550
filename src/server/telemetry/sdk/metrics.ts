import type { HrTime } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { DataPoint, Histogram, MetricData } from '@opentelemetry/sdk-metrics';
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import { type ExportReport, watchExports } from './watch-exports.js';

/** All metrics of the process's one registry, as Prometheus reads them. */
export type ReadMetrics = () => Promise<readonly Samples[]>;

type Samples = MetricObjectWithValues<MetricValue<string>>;
type Times = Pick<DataPoint<number>, 'startTime' | 'endTime'>;

/** Exports what `read` returns, every `intervalMs` and at the end. @returns what ends it */
export async function exportMetrics(
  resource: Resource,
  { read, intervalMs }: { read: ReadMetrics; intervalMs: number },
  report: ExportReport,
): Promise<() => Promise<void>> {
  const sdk = await import('@opentelemetry/sdk-metrics');
  const { OTLPMetricExporter } = await import('@opentelemetry/exporter-metrics-otlp-proto');
  const exporter = new OTLPMetricExporter();
  watchExports(exporter, report);
  const startTime = toHrTime(Date.now() - process.uptime() * 1000);
  const collect = async () => {
    const times = { startTime, endTime: toHrTime(Date.now()) };
    const metrics = (await read()).flatMap((samples) => metricOf(sdk, samples, times) ?? []);
    const scopeMetrics = [{ scope: { name: 'attestation-service' }, metrics }];
    return { resourceMetrics: { resource, scopeMetrics }, errors: [] };
  };
  const reader = new sdk.PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: intervalMs,
    exportTimeoutMillis: Math.min(intervalMs, MAX_EXPORT_MS),
    metricProducers: [{ collect }],
  });
  const provider = new sdk.MeterProvider({ resource, readers: [reader] });
  return () => provider.shutdown();
}

const MAX_EXPORT_MS = 10_000;

type MetricsSdk = typeof import('@opentelemetry/sdk-metrics');

/** A metric of the registry. Undefined for a summary, of which it has none. */
function metricOf(
  { AggregationTemporality, DataPointType }: MetricsSdk,
  { name, help, type, values }: Samples,
  times: Times,
): MetricData | undefined {
  const metric = {
    descriptor: { name, description: help, unit: unitOf(name), valueType: 1 },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const points = () => values.map(({ value, labels }) => ({ ...times, attributes: { ...labels }, value }));
  // prom-client's type says numbers; its values are words.
  switch (String(type)) {
    case 'counter':
      return { ...metric, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: points() };
    case 'gauge':
      return { ...metric, dataPointType: DataPointType.GAUGE, dataPoints: points() };
    case 'histogram':
      return { ...metric, dataPointType: DataPointType.HISTOGRAM, dataPoints: histograms(values, times) };
    default:
      return undefined;
  }
}

function unitOf(name: string): string {
  if (name.includes('_seconds')) return 's';
  return name.includes('_bytes') ? 'By' : '';
}

/** Samples of one set of labels: buckets up to their bound, then sum and count. */
function histograms(values: Samples['values'], times: Times): DataPoint<Histogram>[] {
  const found = new Map<string, DataPoint<Histogram>>();
  for (const { value, labels, metricName } of values as (MetricValue<string> & { metricName: string })[]) {
    const { le, ...attributes } = labels as Record<string, string | number>;
    const key = JSON.stringify(attributes);
    const point = found.get(key) ?? emptyHistogram(attributes, times);
    found.set(key, point);
    if (metricName.endsWith('_sum')) Object.assign(point.value, { sum: value });
    else if (metricName.endsWith('_count')) Object.assign(point.value, { count: value });
    else addBucket(point.value.buckets, le, value);
  }
  return [...found.values()];
}

function emptyHistogram(attributes: Record<string, string | number>, times: Times): DataPoint<Histogram> {
  return { ...times, attributes, value: { buckets: { boundaries: [], counts: [] }, sum: 0, count: 0 } };
}

/** The registry counts all values up to a bound; here each is in one bucket. */
function addBucket({ boundaries, counts }: Histogram['buckets'], le: unknown, upTo: number): void {
  counts.push(upTo - counts.reduce((sum, count) => sum + count, 0));
  if (le !== '+Inf') boundaries.push(Number(le));
}

function toHrTime(ms: number): HrTime {
  return [Math.floor(ms / 1000), Math.floor((ms % 1000) * 1e6)];
}
