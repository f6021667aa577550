// A process that creates submissions over gRPC, gRPC-Web or Connect for a while, 64 calls at a time, and prints what became of it. It writes
// frames itself: a client library would use more of the machine than the server.
import { randomBytes } from 'node:crypto';
import { type ClientHttp2Session, connect } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import {
  AttestationService,
  CreateAttestationRequestSchema,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { quantile } from '../rounds.js';
import { CONNECTIONS, type LoadResult } from './load.js';

const SESSIONS = 4;

const {
  baseUrl,
  apiKey,
  seconds,
  contentType = 'application/grpc+proto',
} = JSON.parse(process.argv[2] ?? '') as {
  baseUrl: string;
  apiKey: string;
  seconds: number;
  contentType?: string;
};
const isGrpc = contentType.startsWith('application/grpc+');
const isEnveloped = contentType.startsWith('application/grpc');
const method = AttestationService.method.createAttestation;
const HEADERS = {
  ':method': 'POST',
  ':path': `/${method.parent.typeName}/${method.name}`,
  'content-type': contentType,
  te: 'trailers',
  authorization: `Bearer ${apiKey}`,
};
const run = randomBytes(24).toString('hex');
const latencies: number[] = [];
let count = 0;
let failed = 0;

const startedMs = performance.now();
const endMs = startedMs + seconds * 1000;
const sessions = Array.from({ length: SESSIONS }, () => connect(baseUrl));
await Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => callUntilEnd(sessions[i % SESSIONS])));
const result: LoadResult = {
  requests: latencies.length,
  seconds: (performance.now() - startedMs) / 1000,
  p50Ms: quantile(latencies, 0.5) ?? 0,
  p99Ms: quantile(latencies, 0.99) ?? 0,
  maxMs: quantile(latencies, 1) ?? 0,
  failed,
};
for (const session of sessions) session.destroy();
console.log(JSON.stringify(result));

async function callUntilEnd(session: ClientHttp2Session | undefined): Promise<void> {
  if (session === undefined) return;
  while (performance.now() < endMs) {
    const startedAt = performance.now();
    if (!(await call(session))) failed++;
    latencies.push(performance.now() - startedAt);
  }
}

/** One unary call; false when its status is not OK: that of gRPC, of the others that of HTTP. */
function call(session: ClientHttp2Session): Promise<boolean> {
  return new Promise((resolve) => {
    const stream = session.request(HEADERS);
    let status: unknown;
    stream.on('response', (headers) => {
      status = isGrpc ? headers['grpc-status'] : headers[':status'] === 200 ? '0' : undefined;
    });
    stream.on('trailers', (trailers) => {
      status = trailers['grpc-status'] ?? status;
    });
    stream.on('error', () => {});
    stream.on('close', () => resolve(status === '0'));
    stream.resume();
    stream.end(isEnveloped ? frame(nextMessage()) : nextMessage());
  });
}

function nextMessage(): Uint8Array {
  count++;
  const sha256 = run + count.toString(16).padStart(16, '0');
  const metadata = { schema: 'purl', purl: 'pkg:npm/%40scope/name@1.2.3?arch=x64', run: count };
  return toBinary(
    CreateAttestationRequestSchema,
    create(CreateAttestationRequestSchema, { artifact: { sha256 }, metadata }),
  );
}

/** A length-prefixed message: no compression, length in 4 bytes. */
function frame(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(5 + message.length);
  bytes.writeUInt8(0, 0);
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, 5);
  return bytes;
}
