import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';
import { untilAborted } from '../core/until-aborted.js';

/** The metrics of a finished request. */
type RequestSample = {
  /** For example `InfoService/GetHealth`; undefined if the request was no RPC. */
  rpc: string | undefined;
  protocol: string;
  /** HTTP status, on gRPC that of the error's code. */
  status: number;
  durationMs: number;
};

/** A gauge whose value is read on each scrape. */
type GaugeSource = {
  /** With unit, for example `attest_queue_oldest_seconds`. */
  name: string;
  help: string;
  labelNames?: readonly string[];
  /** The value, or one for each set of labels. */
  read: () => GaugeValue | Promise<GaugeValue>;
  /** How the values of several API processes make one; `sum` by default. */
  merge?: 'sum' | 'first' | 'min' | 'max';
};
export type GaugeValue = number | readonly { labels: Record<string, string>; value: number }[];

type HistogramOptions = {
  name: string;
  help: string;
  labelNames: readonly string[];
  buckets: readonly number[];
};

/** Adds to a histogram. `start` begins a series at 0: Prometheus sees no increase where there was no series. */
type Observe = {
  observe: (value: number, labels?: Record<string, string>) => void;
  start: (labels: Record<string, string>) => void;
};

/** Increases a counter. */
type Increase = { add: (n: number, labels?: Record<string, string>) => void };

/** The metrics of one process. */
export type Metrics = {
  observeRequest: (sample: RequestSample) => void;
  addGauge: (source: GaugeSource) => void;
  /** Adds a counter, one value per set of labels. */
  addCounter: (name: string, help: string, labelNames?: readonly string[]) => Increase;
  /** Adds a histogram with the upper bounds of its buckets, one per set of labels. */
  addHistogram: (options: HistogramOptions) => Observe;
  /** All metrics in the Prometheus text format, and its content type. */
  read: () => Promise<MetricsText>;
  /** All metrics, for another process to merge. */
  snapshot: () => Promise<MetricsSnapshot>;
};

type MetricsText = { contentType: string; text: string };
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

const DURATION_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Timeout of one value; a scraper times out after ten seconds and then gets no metrics at all. */
const READ_TIMEOUT_MS = 2_000;

/** Gauges whose names end like a counter's; each has a twin with the right type. */
const MISNAMED = ['handles', 'requests', 'resources'].map((kind) => `nodejs_active_${kind}_total`);

/** Creates a registry with the metrics of the process and of requests. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return {
    observeRequest: requestMetrics(registry),
    addGauge: (source) => addGauge(registry, source),
    addCounter(name, help, labelNames = []) {
      const counter = new Counter({ name, help, labelNames: [...labelNames], registers: [registry] });
      return { add: (n, labels = {}) => counter.inc(labels, n) };
    },
    addHistogram({ name, help, labelNames, buckets }) {
      const options = { name, help, labelNames: [...labelNames], buckets: [...buckets] };
      const histogram = new Histogram({ ...options, registers: [registry] });
      return {
        observe: (value, labels = {}) => histogram.observe(labels, value),
        start: (labels) => histogram.zero(labels),
      };
    },
    read: () => readText(registry),
    snapshot: () => registry.getMetricsAsJSON(),
  };
}

/** Merges the metrics of several processes: counters and histograms are added, gauges as each says. */
export function mergeMetrics(snapshots: readonly MetricsSnapshot[]): Promise<MetricsText> {
  return readText(AggregatorRegistry.aggregate(snapshots.map((snapshot) => [...snapshot])));
}

async function readText(registry: Registry): Promise<MetricsText> {
  return { contentType: registry.contentType, text: await registry.metrics() };
}

/** The statuses that count against an objective. */
const SERVER_ERRORS = ['500', '503', '504'];

/** Counts requests by outcome, and durations without it: each label would multiply the buckets. */
function requestMetrics(registry: Registry): Metrics['observeRequest'] {
  const registers = [registry];
  const requests = new Counter({
    name: 'attest_requests_total',
    help: 'Requests answered, by RPC, surface and HTTP status (on gRPC that of the error)',
    labelNames: ['rpc', 'surface', 'status'] as const,
    registers,
  });
  const durations = new Histogram({
    name: 'attest_request_duration_seconds',
    help: 'Time from the headers of a request to the end of its answer',
    labelNames: ['rpc', 'surface'] as const,
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  const started = new Set<string>();
  return ({ rpc = 'none', protocol, status, durationMs }) => {
    const labels = { rpc, surface: protocol };
    if (!started.has(`${rpc} ${protocol}`)) {
      started.add(`${rpc} ${protocol}`);
      // Prometheus sees no increase where there was no series.
      for (const error of SERVER_ERRORS) requests.inc({ ...labels, status: error }, 0);
    }
    requests.inc({ ...labels, status: String(status) });
    durations.observe(labels, durationMs / 1000);
  };
}

function addGauge(
  registry: Registry,
  { name, help, labelNames = [], read, merge = 'sum' }: GaugeSource,
): void {
  new Gauge({
    name,
    help,
    labelNames: [...labelNames],
    registers: [registry],
    aggregator: merge,
    async collect() {
      // A failing or silent source leaves its gauge without a value; the other metrics matter all the more.
      this.reset();
      if (labelNames.length === 0) this.remove();
      const value = await readInTime(read).catch((): GaugeValue => []);
      if (typeof value === 'number') this.set(value);
      else for (const { labels, value: one } of value) this.set(labels, one);
    },
  });
}

/** Reads a value; rejects after {@link READ_TIMEOUT_MS}. */
async function readInTime(read: GaugeSource['read']): Promise<GaugeValue> {
  return untilAborted(Promise.resolve(read()), AbortSignal.timeout(READ_TIMEOUT_MS));
}
