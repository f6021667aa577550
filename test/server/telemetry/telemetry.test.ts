/** Traces, metrics and logs of processes as a collector gets them. */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { newCreation } from '../../support/calling/load.js';
import { BUCKET, OWNER, startStore } from '../../support/exports/s3/fixture.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { resolvedBy } from '../../support/source/loaded-modules.js';
import { type CollectedSpan, startCollector } from '../../support/telemetry/collector.js';
import { until } from '../../support/until.js';
import { startReceiver } from '../../support/webhooks/receiver.js';
import { startFaultTsa } from '../../support/witnesses/fault-tsa.js';

const collector = await startCollector(t);
const receiver = await startReceiver(t);
const store = await startStore(t);
const tsa = await startFaultTsa(t);
const installation = await makeInstallation(t, {
  env: {
    WITNESSES: JSON.stringify([tsa.setting('foreign')]),
    ALLOW_INSECURE_DESTINATIONS: 'true',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=acme',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=a-test',
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_METRIC_EXPORT_INTERVAL: '1000',
  },
});
const [api] = await Promise.all([installation.startApi(), installation.startWorker()]);
const pool = installation.openPool();
const apiKey = await makeUnlimitedKey(pool);

async function post(path: string, body: object, headers: Record<string, string> = {}, key = apiKey) {
  const answer = await fetch(`${api.baseUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify(body),
  });
  return { status: answer.status, json: (await answer.json()) as { id: string; secret: string } };
}

const submission = () => ({
  artifact: { sha256: newCreation().artifactSha256 },
  metadata: { schema: 'purl', purl: 'pkg:generic/secret-of-the-metadata' },
});
const create = (headers?: Record<string, string>, key?: string) =>
  post('/v1/attestations', submission(), headers, key);

const newTrace = () => randomBytes(16).toString('hex');
const sampled = (trace: string) => ({ traceparent: `00-${trace}-00f067aa0ba902b7-01` });
const spansOf = (trace: string) => collector.spans.filter(({ traceId }) => traceId === trace);
const CREATE = 'attestation.v1.AttestationService/CreateAttestation';

/** Waits for the create's span of the trace. */
function created(trace: string): Promise<CollectedSpan> {
  return until('the span of the create arrives', async () =>
    spansOf(trace).find(({ name }) => name === CREATE),
  );
}

const STAGES = ['sequence', 'seal', 'witness', 'settle', 'notify', 'webhook', 'ship', 'write object'];

/** Creates until a trace has every stage: those that the reconciler finds first are in traces of their own. */
async function findWholeTrace(): Promise<string> {
  const traces: string[] = [];
  let nextMs = 0;
  return until('a trace has every stage', async () => {
    if (Date.now() > nextMs) {
      nextMs = Date.now() + 2_000;
      traces.push(newTrace());
      await create(sampled(traces.at(-1) ?? ''));
    }
    return traces.find((trace) => {
      const found = new Set(spansOf(trace).map(({ name }) => name));
      return STAGES.every((name) => found.has(name));
    });
  });
}

t.test('one trace leads from a create to witness, webhook and export', async (t) => {
  const { json: webhook } = await post('/v1/webhooks', {
    url: receiver.url,
    events: ['attestation.witnessed'],
  });
  receiver.trust(webhook.secret);
  const { accessKeyId: access_key_id, secretAccessKey: secret_access_key } = OWNER;
  const destination = { kind: 's3', bucket: BUCKET, endpoint: store.url, access_key_id, secret_access_key };
  const made = await post('/v1/exports', { destination });
  t.equal(made.status, 201, JSON.stringify(made.json));
  const trace = await findWholeTrace();
  const spans = spansOf(trace);
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const ancestors = (span: CollectedSpan | undefined): string[] =>
    span === undefined ? [] : [span.name, ...ancestors(byId.get(span.parentSpanId))];
  const find = (name: string) => spans.find((span) => span.name === name);
  const top = find(CREATE);
  t.equal(top?.parentSpanId, '00f067aa0ba902b7', "the caller's span is above");
  t.match(top, {
    kind: 'server',
    attributes: {
      'http.route': '/v1/attestations',
      'http.response.status_code': 201,
      'attest.environment': 'live',
    },
    resource: {
      'service.name': 'attestation-service',
      'deployment.environment.name': 'a-test',
      'attest.role': 'api',
    },
  });
  for (const name of STAGES) t.equal(ancestors(find(name)).at(-1), CREATE, `${name} is below the create`);
  t.ok(
    spans.some(({ name, parentSpanId }) => name === 'SELECT' && byId.get(parentSpanId)?.name === 'sequence'),
    'the statement is below the sequence',
  );
  const hook = receiver.received.find(({ headers }) => String(headers.traceparent).includes(trace));
  t.equal(
    byId.get(String(hook?.headers.traceparent).split('-')[2] ?? '')?.kind,
    'client',
    'the receiver is called',
  );
  const sent = new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`);
  t.ok(
    tsa.headers.some(({ traceparent }) => sent.test(String(traceparent))),
    'the authority gets a traceparent',
  );
  const put = store.requests.filter(({ headers }) => String(headers.traceparent).includes(trace));
  t.ok(put.length > 0, 'the store gets a traceparent');
});

t.test('callers share the write, and each is linked to it', async (t) => {
  const traces = Array.from({ length: 8 }, newTrace);
  await Promise.all(traces.map((trace) => create(sampled(trace))));
  const tops = await Promise.all(traces.map(created));
  const writes = () => collector.spans.filter(({ name }) => name === 'sequence');
  for (const { spanId } of tops) {
    await until('a write knows the call', async () =>
      writes().some(({ parentSpanId, links }) =>
        [parentSpanId, ...links.map((l) => l.spanId)].includes(spanId),
      ),
    );
  }
  t.ok(writes().some(({ links }) => links.length > 0));
});

t.test('the caller decides whether its own trace is recorded', async (t) => {
  const [off, on] = [newTrace(), newTrace()];
  const headers = { traceparent: `00-${off}-00f067aa0ba902b7-00` };
  t.equal((await create(headers)).status, 201);
  await create(sampled(on));
  await created(on);
  t.same(spansOf(off), []);
});

t.test('strangers and what is no traceparent begin a trace of their own', async (t) => {
  const count = () => collector.spans.filter(({ name }) => name === CREATE || name === 'POST').length;
  const trace = newTrace();
  const before = count();
  const wrong = `svc_live_${'x'.repeat(43)}`;
  t.equal((await create(sampled(trace), wrong)).status, 401);
  const { traceparent } = sampled(trace);
  for (const bad of [
    '',
    'x',
    traceparent.slice(0, -1),
    traceparent.toUpperCase(),
    traceparent.replace('00-', 'ff-'),
    traceparent.replace(trace, '0'.repeat(32)),
    traceparent.replace('00f067aa0ba902b7', '0'.repeat(16)),
    `${traceparent}-more`,
    `${traceparent}, ${traceparent}`,
    traceparent.replace('00-', '01-') + '-'.padEnd(200, 'x'),
    `${traceparent}\u00ff`,
    `00-${'a'.repeat(8_000)}-00f067aa0ba902b7-01`,
  ])
    t.equal((await create({ traceparent: bad })).status, 201, bad.slice(0, 80));
  await until('all are recorded', async () => count() >= before + 13);
  t.same(
    spansOf(trace).map(({ name }) => name),
    [],
  );
});

t.test('tracestate and baggage are not passed on', async (t) => {
  const trace = newTrace();
  const tracestate = Array.from({ length: 200 }, (_, i) => `vendor${i}=${'s'.repeat(40)}`).join(',');
  const { status, json } = await create({
    ...sampled(trace),
    tracestate,
    baggage: 'user=secret-of-the-baggage',
  });
  t.equal(status, 201);
  await created(trace);
  await until('its event is delivered', async () =>
    receiver.received.some(({ body }) => body.includes(json.id)),
  );
  for (const headers of [...tsa.headers, ...receiver.received.map((one) => one.headers)]) {
    t.notOk(headers.tracestate ?? headers.baggage);
  }
});

t.test('a caller cannot have everything recorded', async (t) => {
  const traces = Array.from({ length: 25 }, newTrace);
  const startedMs = Date.now();
  for (const trace of traces) t.equal((await create(sampled(trace))).status, 201);
  const seconds = Math.ceil((Date.now() - startedMs) / 1000) + 1;
  const last = newTrace();
  await until('a second later it is followed again', async () => {
    await create(sampled(last));
    return spansOf(last).length > 0;
  });
  const followed = traces.filter((trace) => spansOf(trace).length > 0).length;
  t.ok(followed >= 10 && followed <= 10 * seconds, `${followed} of 25 in ${seconds} s`);
});

t.test('lines of the log are beside the traces', async (t) => {
  const trace = newTrace();
  // The allowance of this second may be spent.
  const line = await until('the line of a request arrives', async () => {
    await create(sampled(trace));
    return collector.logs.find((log) => log.body === 'request' && log.traceId === trace);
  });
  t.match(line, {
    severity: 'info',
    attributes: { status: 201, rpc: 'AttestationService/CreateAttestation' },
  });
  await until('it is written, too', async () =>
    api.lines.some((written) => written.trace_id === trace && written.msg === 'request'),
  );
});

t.test('metrics are those of /metrics', async (t) => {
  const metric = (name: string) =>
    collector.metrics.findLast((one) => one.name === name && one.resource['attest.role'] === 'api');
  const requests = await until('they arrive', async () => metric('attest_requests_total'));
  t.equal(requests.kind, 'sum');
  t.ok(requests.points.some(({ attributes, value }) => attributes.status === '201' && value > 0));
  t.match(metric('process_resident_memory_bytes'), { kind: 'gauge', unit: 'By' });
  const durations = metric('attest_request_duration_seconds');
  t.match(durations, { kind: 'histogram', unit: 's' });
  for (const { bounds, counts, value } of durations?.points ?? []) {
    t.equal(counts.length, bounds.length + 1);
    t.equal(
      counts.reduce((sum, count) => sum + count, 0),
      value,
    );
  }
  const text = await (await fetch(`${api.opsUrl}/metrics`)).text();
  const names = new Set([...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name));
  await until('each metric has arrived', async () =>
    [...names].every((name) => metric(name ?? '') !== undefined),
  );
});

t.test('nothing that is secret leaves', (t) => {
  const sent = collector.bytes().toString('latin1');
  for (const secret of [
    apiKey,
    OWNER.secretAccessKey,
    'secret-of-the-metadata',
    'secret-of-the-baggage',
    installation.env.SECRET_KEY ?? '',
    installation.env.ADMIN_TOKEN ?? '',
  ])
    t.notOk(sent.includes(secret), secret);
  t.equal(collector.requests[0]?.['x-tenant'], 'acme');
  t.end();
});

t.test('a collector that fails or hangs costs the traces alone', async (t) => {
  const outages = () => api.lines.filter(({ msg }) => msg === 'telemetry is not exported');
  collector.behave((response) => response.writeHead(400).end());
  for (let i = 0; i < 8; i++) t.equal((await create()).status, 201);
  await until('it is logged', async () => outages().some(({ signal }) => signal === 'traces'));
  t.equal(outages().filter(({ signal }) => signal === 'traces').length, 1);
  collector.behave();
  await create();
  await until('its end is logged', async () =>
    api.lines.some(({ msg, signal }) => msg === 'telemetry is exported again' && signal === 'traces'),
  );
  collector.behave(() => {});
  const startedMs = Date.now();
  for (let i = 0; i < 8; i++) t.equal((await create()).status, 201);
  t.ok(Date.now() - startedMs < 5_000);
  const stoppingMs = Date.now();
  await api.stop();
  t.ok(Date.now() - stoppingMs < 10_000, 'a shutdown does not wait for it');
});

t.test('without an endpoint no module of the SDK is loaded', async (t) => {
  const at = (path: string) => new URL(`../../../src/server/${path}.js`, import.meta.url).href;
  const loaded = ['process/run', 'process/start-process', 'process/api/api', 'process/worker/worker'].map(at);
  const modules = await resolvedBy(loaded.map((url) => `await import('${url}');`).join('\n'));
  t.match(modules, /server\/telemetry\/spans\.js/);
  t.notMatch(modules, /server\/telemetry\/sdk\/|@opentelemetry\/(?!api\/)/);
});
