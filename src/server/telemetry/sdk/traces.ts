import { context, propagation, trace } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import { recordedContexts } from './active-context.js';
import { type ExportReport, watchExports } from './watch-exports.js';

/** Exports spans; sampler, queue and exporter are as OTEL_* says. @returns what flushes and ends it */
export async function exportTraces(resource: Resource, report: ExportReport): Promise<() => Promise<void>> {
  const { BasicTracerProvider, BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base');
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
  const { W3CTraceContextPropagator } = await import('@opentelemetry/core');
  const exporter = new OTLPTraceExporter();
  watchExports(exporter, report);
  const { manager, processor } = recordedContexts();
  const spanProcessors = [processor, new BatchSpanProcessor(exporter)];
  const provider = new BasicTracerProvider({ resource, spanProcessors });
  context.setGlobalContextManager(manager);
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  return async () => {
    await provider.shutdown();
    trace.disable();
    propagation.disable();
    context.disable();
  };
}
