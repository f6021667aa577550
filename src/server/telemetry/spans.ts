/**
 * Spans, by OpenTelemetry's API. Until an SDK is registered, nothing is recorded and context is not tracked. What is not
 * sampled runs as without telemetry: no span is made below it, and none of its requests has a `traceparent`.
 */
import {
  type Attributes,
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';

/** A span's attributes: never a secret, a parameter of SQL, metadata, a digest or a URL of a customer. */
export type SpanAttributes = Attributes;

/** A reference to a span that is recorded. */
export type SpanReference = SpanContext;

/** `client` and `producer` are requests to others, `server` and `consumer` those of others. */
export type SpanOptions = {
  kind?: 'internal' | 'client' | 'server' | 'producer' | 'consumer';
  attributes?: SpanAttributes;
};

/** A span that is recorded, of work that does not end with a function. */
export type OpenSpan = {
  readonly reference: SpanReference;
  /** Runs work with this span as the active one. */
  run: <T>(work: () => T) => T;
  /** Ends it; `error` is a short name of what failed, such as an error code. */
  end: (attributes: SpanAttributes, error?: string) => void;
};

const KINDS = {
  internal: SpanKind.INTERNAL,
  client: SpanKind.CLIENT,
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

const tracer = trace.getTracer('attestation-service');

/** Whether an SDK is registered. */
export function isTracing(): boolean {
  return propagation.fields().length > 0;
}

/** The active span if it is recorded. */
export function activeSpan(): SpanReference | undefined {
  const span = trace.getActiveSpan();
  return span?.isRecording() ? span.spanContext() : undefined;
}

/** Runs work in a span below the active one; only runs it if there is none. */
export function inSpan<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> {
  if (activeSpan() === undefined) return work();
  return runIn(start(name, options, context.active()), work);
}

/**
 * Runs work that several spans wait for in a span below the first, with links to the others; only runs it if there are
 * none.
 */
export function inSharedSpan<T>(
  name: string,
  [parent, ...others]: readonly SpanReference[],
  options: SpanOptions,
  work: () => Promise<T>,
): Promise<T> {
  if (parent === undefined) return detached(work);
  const links = others.map((other) => ({ context: other }));
  return runIn(start(name, { ...options, links }, trace.setSpanContext(ROOT_CONTEXT, parent)), work);
}

/** Runs work in a span of the trace that `traceparent` names; else in one of a new trace, if that is sampled. */
export function inTrace<T>(
  name: string,
  { traceparent, ...options }: SpanOptions & { traceparent?: string | undefined },
  work: () => Promise<T>,
): Promise<T> {
  return isTracing() ? runIn(start(name, options, contextOf(traceparent)), work) : work();
}

/** Begins a span below the active one. Undefined if there is none. */
export function beginSpan(name: string, options: SpanOptions): OpenSpan | undefined {
  return activeSpan() === undefined ? undefined : opened(start(name, options, context.active()));
}

/** Begins a span as {@link inTrace} does, which has begun at `startedAt`. Undefined if it is not sampled. */
export function beginTrace(
  name: string,
  { traceparent, ...options }: SpanOptions & { traceparent?: string | undefined; startedAt: Date },
): OpenSpan | undefined {
  return opened(start(name, options, contextOf(traceparent)));
}

/** The header that continues the active trace in another process; without members if it is not recorded. */
export function traceHeaders(): { traceparent?: string } {
  const headers: { traceparent?: string } = {};
  if (activeSpan() !== undefined) propagation.inject(context.active(), headers);
  return headers;
}

/** Adds attributes to the active span, if it is recorded. */
export function annotate(attributes: SpanAttributes): void {
  trace.getActiveSpan()?.setAttributes(attributes);
}

/** Whether a valid `traceparent` says that its trace is recorded. */
export function isSampled(traceparent: string): boolean {
  return ((trace.getSpanContext(contextOf(traceparent))?.traceFlags ?? 0) & 1) === 1;
}

/** `tracestate` is neither read nor sent: one batch is many callers' work. */
function contextOf(traceparent: string | undefined): Context {
  return traceparent === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, { traceparent });
}

type StartOptions = SpanOptions & { links?: { context: SpanContext }[]; startedAt?: Date };

function start(
  name: string,
  { kind = 'internal', startedAt, ...options }: StartOptions,
  parent: Context,
): Span {
  const startTime = startedAt === undefined ? {} : { startTime: startedAt };
  return tracer.startSpan(name, { ...options, ...startTime, kind: KINDS[kind] }, parent);
}

function opened(span: Span): OpenSpan | undefined {
  if (!span.isRecording()) return undefined;
  const below = trace.setSpan(ROOT_CONTEXT, span);
  return {
    reference: span.spanContext(),
    run: (work) => context.with(below, work),
    end: (attributes, error) => {
      span.setAttributes(attributes);
      if (error !== undefined) fail(span, error);
      span.end();
    },
  };
}

async function runIn<T>(span: Span, work: () => Promise<T>): Promise<T> {
  if (!span.isRecording()) return detached(work);
  try {
    return await context.with(trace.setSpan(ROOT_CONTEXT, span), work);
  } catch (error) {
    fail(span, errorName(error));
    throw error;
  } finally {
    span.end();
  }
}

/** Runs work in no span, whatever it was called from. */
function detached<T>(work: () => T): T {
  return activeSpan() === undefined ? work() : context.with(ROOT_CONTEXT, work);
}

function fail(span: Span, error: string): void {
  span.setAttribute('error.type', error);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The code of an error, else its class. A message may quote what nobody else may read. */
export function errorName(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : error.name;
}
