/** Spans without and with an SDK in this process. */
import { setTimeout as delay } from 'node:timers/promises';
import { context, propagation, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  ParentBasedSampler,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import t from 'tap';
import { recordedContexts } from '../../../src/server/telemetry/sdk/active-context.js';
import {
  activeSpan,
  beginTrace,
  inSharedSpan,
  inSpan,
  inTrace,
  isTracing,
  traceHeaders,
} from '../../../src/server/telemetry/spans.js';

const exporter = new InMemorySpanExporter();
let root: Sampler = new AlwaysOnSampler();

/** Registers an SDK, as a process does once. */
function register(): void {
  const { manager, processor } = recordedContexts();
  const sampler = new ParentBasedSampler({
    root: { shouldSample: (...asked) => root.shouldSample(...asked), toString: () => 'as the test says' },
  });
  const spanProcessors = [processor, new SimpleSpanProcessor(exporter)];
  context.setGlobalContextManager(manager);
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ sampler, spanProcessors }));
}

/** Records spans by this sampler from now on. */
function record(sampler: Sampler = new AlwaysOnSampler()): void {
  root = sampler;
  exporter.reset();
}

t.test('without an SDK work runs, and nothing else happens', async (t) => {
  t.notOk(isTracing());
  t.equal(await inTrace('a', {}, () => inSpan('b', {}, async () => activeSpan() ?? 'none')), 'none');
  t.same(traceHeaders(), {});
  t.equal(beginTrace('a', { startedAt: new Date() }), undefined);
});

t.test('with an SDK there is tracing', async (t) => {
  register();
  t.ok(isTracing());
});

t.test('what is not sampled has no headers, and ends no trace around it', async (t) => {
  record(new AlwaysOffSampler());
  t.same(await inTrace('a', {}, () => inSpan('b', {}, async () => traceHeaders())), {});
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const headers = await inTrace('a', { traceparent }, async () => {
    t.same(await inTrace('another', {}, async () => traceHeaders()), {});
    await delay(1);
    return traceHeaders();
  });
  t.match(headers.traceparent, /^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/);
});

t.test('work that outlives its span is in no trace', async (t) => {
  record();
  let late: Promise<unknown> = Promise.resolve();
  await inTrace('a', {}, async () => {
    late = delay(20).then(() => activeSpan() ?? 'none');
    t.ok(activeSpan());
  });
  t.equal(await late, 'none');
});

t.test('shared work is below the first caller, in each turn', async (t) => {
  record();
  const open = [1, 2, 3].map(() => beginTrace('call', { startedAt: new Date() }));
  const references = open.flatMap((span) => span?.reference ?? []);
  await open[2]?.run(() => inSharedSpan('shared', references, {}, async () => {}));
  await open[2]?.run(() => inSharedSpan('alone', [], {}, async () => t.equal(activeSpan(), undefined)));
  const shared = exporter.getFinishedSpans().find(({ name }) => name === 'shared');
  t.equal(shared?.parentSpanContext?.spanId, references[0]?.spanId);
  t.same(
    shared?.links.map((link) => link.context.spanId),
    references.slice(1).map(({ spanId }) => spanId),
  );
  for (const span of open) span?.end({});
});

t.test('an error names its code and no more', async (t) => {
  record();
  const failure = Object.assign(new Error('a secret'), { code: '23505' });
  await t.rejects(
    inTrace('a', {}, () => Promise.reject(failure)),
    failure,
  );
  const [span] = exporter.getFinishedSpans();
  t.match(span, { attributes: { 'error.type': '23505' }, status: { code: 2 }, events: [] });
  t.notOk(JSON.stringify([span?.attributes, span?.status]).includes('a secret'));
});
