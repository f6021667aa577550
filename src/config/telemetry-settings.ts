/** The standard settings of OpenTelemetry that decide what is exported. The SDK reads them and others by itself. */

import { InvalidValue } from './invalid-value.js';
import { bool, integer, oneOf } from './setting-types.js';
import type { Settings, SettingType } from './settings.js';

/** What a process exports by OTLP. */
export type TelemetryConfig = {
  readonly traces: boolean;
  readonly metrics: boolean;
  readonly logs: boolean;
  readonly metricIntervalMs: number;
};

const collector: SettingType<string> = {
  expected: 'the http or https URL of a collector, such as http://localhost:4318',
  parse: (text) => {
    if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) throw new InvalidValue();
    return text;
  },
};
const exporter = oneOf('otlp', 'none');
const SAMPLERS = ['always_on', 'always_off', 'traceidratio'];
const sampler = oneOf(...SAMPLERS, ...SAMPLERS.map((name) => `parentbased_${name}`));
const ratio: SettingType<number> = {
  expected: 'a number from 0 to 1, such as 0.01',
  parse: (text) => {
    if (!/^(?:0|1|[01]?\.\d{1,9})$/.test(text) || Number(text) > 1) throw new InvalidValue();
    return Number(text);
  },
};

/** Reads them; undefined without an endpoint: nothing is exported then. The SDK would ignore what is invalid. */
export function readTelemetry(settings: Settings): TelemetryConfig | undefined {
  const isDisabled = settings.get('OTEL_SDK_DISABLED', bool, false);
  const shared = settings.find('OTEL_EXPORTER_OTLP_ENDPOINT', collector);
  const own = {
    traces: settings.find('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', collector),
    metrics: settings.find('OTEL_EXPORTER_OTLP_METRICS_ENDPOINT', collector),
    logs: settings.find('OTEL_EXPORTER_OTLP_LOGS_ENDPOINT', collector),
  };
  const by = {
    traces: settings.find('OTEL_TRACES_EXPORTER', exporter),
    metrics: settings.find('OTEL_METRICS_EXPORTER', exporter),
    logs: settings.find('OTEL_LOGS_EXPORTER', exporter),
  };
  settings.find('OTEL_EXPORTER_OTLP_PROTOCOL', oneOf('http/protobuf'));
  settings.find('OTEL_TRACES_SAMPLER', sampler);
  settings.find('OTEL_TRACES_SAMPLER_ARG', ratio);
  const metricIntervalMs = settings.get('OTEL_METRIC_EXPORT_INTERVAL', integer(100, 86_400_000), 60_000);
  const isExported = (signal: 'traces' | 'metrics' | 'logs') =>
    by[signal] !== 'none' && (own[signal] ?? shared) !== undefined;
  const [traces, metrics, logs] = [isExported('traces'), isExported('metrics'), isExported('logs')];
  return !isDisabled && (traces || metrics || logs) ? { traces, metrics, logs, metricIntervalMs } : undefined;
}
