import { trace } from '@opentelemetry/api';

/** Passes the lines of a logger on to OpenTelemetry, from when `take` is set. */
export type LogRelay = { take: ((line: string) => void) | undefined };

/** The active trace, as members of a log line; without members if there is none. */
export function traceMembers(): { trace_id?: string; span_id?: string } {
  const span = trace.getActiveSpan();
  if (span === undefined) return {};
  const { traceId, spanId } = span.spanContext();
  return { trace_id: traceId, span_id: spanId };
}
