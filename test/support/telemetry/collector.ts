/** A collector of OTLP over HTTP: reads what it gets by OpenTelemetry's own protos, in `proto/`, and keeps it. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader';
import type { Test } from 'tap';

/** Attributes by name. */
export type Attributes = Record<string, string | number | boolean>;

/** A span as it came, and the process that it is of. */
export type CollectedSpan = {
  name: string;
  kind: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  links: { traceId: string; spanId: string }[];
  attributes: Attributes;
  isError: boolean;
  resource: Attributes;
};

/** A line of a log as it came. */
export type CollectedLog = { body: string; severity: string; traceId: string; attributes: Attributes };

/** A metric as it came; `points` are its values, or counts of a histogram. */
export type CollectedMetric = {
  name: string;
  unit: string;
  kind: 'sum' | 'gauge' | 'histogram';
  resource: Attributes;
  points: { attributes: Attributes; value: number; bounds: number[]; counts: number[] }[];
};

export type Collector = {
  url: string;
  spans: CollectedSpan[];
  logs: CollectedLog[];
  metrics: CollectedMetric[];
  /** The headers of every request. */
  requests: IncomingHttpHeaders[];
  /** How requests are answered from now on; by 200 when left out. */
  behave: (behaviour?: (response: ServerResponse) => void) => void;
  /** The bytes of all requests, where a secret would be found. */
  bytes: () => Buffer;
};

const PROTOS = fileURLToPath(new URL('../../../../test/support/telemetry/proto/', import.meta.url));

/** Starts a collector on a free port of 127.0.0.1, until the test ends. */
export async function startCollector(t: Pick<Test, 'teardown'>): Promise<Collector> {
  const read = { traces: decoder('trace'), metrics: decoder('metrics'), logs: decoder('logs') };
  const bodies: Buffer[] = [];
  let behave: ((response: ServerResponse) => void) | undefined;
  const server = createServer(async (request, response) => {
    const sent = await buffer(request);
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
    collector.requests.push(request.headers);
    if (behave !== undefined) return behave(response);
    bodies.push(body);
    if (request.url === '/v1/traces') collector.spans.push(...spansOf(read.traces(body)));
    else if (request.url === '/v1/metrics') collector.metrics.push(...metricsOf(read.metrics(body)));
    else if (request.url === '/v1/logs') collector.logs.push(...logsOf(read.logs(body)));
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const collector: Collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    logs: [],
    metrics: [],
    requests: [],
    behave: (behaviour) => {
      behave = behaviour;
    },
    bytes: () => Buffer.concat(bodies),
  };
  return collector;
}

type Value = { stringValue?: string; intValue?: string; doubleValue?: number; boolValue?: boolean };
type Described = { attributes: { key: string; value: Value }[] };
type Message = Record<string, never[]>;

/** Reads the request of a signal's service. */
function decoder(signal: 'trace' | 'metrics' | 'logs'): (bytes: Buffer) => Message {
  const definitions = loadSync(`opentelemetry/proto/collector/${signal}/v1/${signal}_service.proto`, {
    includeDirs: [PROTOS],
    enums: String,
    longs: String,
    defaults: true,
  });
  const name = `${signal[0]?.toUpperCase()}${signal.slice(1)}Service`;
  const service = definitions[`opentelemetry.proto.collector.${signal}.v1.${name}`] as ServiceDefinition;
  return (bytes) => service.Export?.requestDeserialize(bytes) as Message;
}

function attributesOf({ attributes }: Described): Attributes {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, doubleValue, boolValue } }) => [
      key,
      stringValue ?? (intValue === undefined ? (doubleValue ?? boolValue ?? '') : Number(intValue)),
    ]),
  );
}

type Id = { traceId: Buffer; spanId: Buffer };
type SentSpan = Id &
  Described & {
    name: string;
    kind: string;
    parentSpanId: Buffer;
    links: Id[];
    status: { code: string } | null;
  };

function spansOf(message: Message): CollectedSpan[] {
  const resources = message.resourceSpans as unknown as {
    resource: Described;
    scopeSpans: { spans: SentSpan[] }[];
  }[];
  return resources.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        ...idOf(span),
        name: span.name,
        kind: span.kind.replace('SPAN_KIND_', '').toLowerCase(),
        parentSpanId: span.parentSpanId.toString('hex'),
        links: span.links.map(idOf),
        attributes: attributesOf(span),
        isError: span.status?.code === 'STATUS_CODE_ERROR',
        resource: attributesOf(resource),
      })),
  );
}

function idOf({ traceId, spanId }: Id): { traceId: string; spanId: string } {
  return { traceId: traceId.toString('hex'), spanId: spanId.toString('hex') };
}

type SentLog = Id & Described & { body: Value; severityText: string };

function logsOf(message: Message): CollectedLog[] {
  const resources = message.resourceLogs as unknown as { scopeLogs: { logRecords: SentLog[] }[] }[];
  return resources
    .flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
    .map((line) => ({
      body: line.body.stringValue ?? '',
      severity: line.severityText,
      traceId: line.traceId.toString('hex'),
      attributes: attributesOf(line),
    }));
}

type SentPoint = Described & {
  asDouble?: number;
  asInt?: string;
  count?: string;
  bucketCounts?: string[];
  explicitBounds?: number[];
};
type Points = { dataPoints: SentPoint[] } | null;
type SentMetric = { name: string; unit: string; sum: Points; gauge: Points; histogram: Points };

function metricsOf(message: Message): CollectedMetric[] {
  const resources = message.resourceMetrics as unknown as {
    resource: Described;
    scopeMetrics: { metrics: SentMetric[] }[];
  }[];
  return resources.flatMap(({ resource, scopeMetrics }) =>
    scopeMetrics
      .flatMap(({ metrics }) => metrics)
      .map((metric) => {
        const kind = metric.sum ? 'sum' : metric.gauge ? 'gauge' : 'histogram';
        const points = (metric[kind]?.dataPoints ?? []).map((point) => ({
          attributes: attributesOf(point),
          value: Number(point.count ?? point.asDouble ?? point.asInt),
          bounds: point.explicitBounds ?? [],
          counts: (point.bucketCounts ?? []).map(Number),
        }));
        return { name: metric.name, unit: metric.unit, kind, points, resource: attributesOf(resource) };
      }),
  );
}
