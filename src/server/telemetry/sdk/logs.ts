import { ROOT_CONTEXT, TraceFlags, trace } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { LoggerProvider } from '@opentelemetry/sdk-logs';
import type { LogRelay } from '../log-relay.js';
import { type ExportReport, watchExports } from './watch-exports.js';

type LogRecord = Parameters<ReturnType<LoggerProvider['getLogger']>['emit']>[0];

/** Numbers of severity by level (OpenTelemetry's data model of logs). */
const SEVERITIES: Readonly<Record<string, number>> = {
  trace: 1,
  debug: 5,
  info: 9,
  warn: 13,
  error: 17,
  fatal: 21,
};

/** Exports the lines of a relay. @returns what flushes and ends it */
export async function exportLogs(
  resource: Resource,
  relay: LogRelay,
  report: ExportReport,
): Promise<() => Promise<void>> {
  const { LoggerProvider, BatchLogRecordProcessor } = await import('@opentelemetry/sdk-logs');
  const { OTLPLogExporter } = await import('@opentelemetry/exporter-logs-otlp-proto');
  const exporter = new OTLPLogExporter();
  watchExports(exporter, report);
  const provider = new LoggerProvider({ resource, processors: [new BatchLogRecordProcessor({ exporter })] });
  const logger = provider.getLogger('attestation-service');
  relay.take = (line) => logger.emit(recordOf(line));
  return async () => {
    relay.take = undefined;
    await provider.shutdown();
  };
}

/** A line of the logger as a record: the message is the body, and an error has the attributes of an exception. */
function recordOf(line: string): LogRecord {
  const { level, time, msg, pid: _, trace_id, span_id, err, ...attributes } = JSON.parse(line);
  const span = { traceId: trace_id, spanId: span_id, traceFlags: TraceFlags.SAMPLED };
  return {
    timestamp: new Date(time),
    severityText: level,
    severityNumber: SEVERITIES[level] ?? 0,
    body: msg ?? '',
    attributes: { ...attributes, ...exceptionOf(err) },
    ...(trace_id === undefined ? {} : { context: trace.setSpanContext(ROOT_CONTEXT, span) }),
  };
}

function exceptionOf(error: Record<string, string> | undefined): Record<string, string | undefined> {
  if (error === undefined) return {};
  const { type, message, stack } = error;
  return { 'exception.type': type, 'exception.message': message, 'exception.stacktrace': stack };
}
