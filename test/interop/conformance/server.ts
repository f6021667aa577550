// A server for the cases of Connect's conformance suite: its unary methods on the service's own path for RPCs. The
// suite's runner starts one for each configuration, says which on stdin and reads on stdout where it listens.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import type { TlsFiles } from '../../../src/config/tls-files.js';
import { ApiError } from '../../../src/server/core/errors.js';
import { listen } from '../../../src/server/core/http/listen.js';
import { createLogger } from '../../../src/server/core/logger.js';
import { createApp } from '../../../src/server/http/app.js';
import { refuseUnknownRpc, wantsRpc } from '../../../src/server/http/connect/refusal.js';
import { createBodyMemory, createResponseMemory } from '../../../src/server/http/socket/bodies.js';
import { refuseMalformed } from '../../../src/server/http/socket/client-error.js';
import { DEFAULT_LIMITS } from '../../../src/server/http/socket/limits.js';
import { createListener } from '../../../src/server/http/socket/listener.js';
import {
  createRequestIds,
  createRequests,
  type RequestRecord,
} from '../../../src/server/http/socket/requests.js';
import { writeError } from '../../../src/server/http/socket/write-response.js';
import { answerCase } from './answer.js';
import { readSchema, type Schema } from './schema.js';

/** `ServerCompatRequest`. */
type Wanted = {
  messageReceiveLimit: number;
  useTls: boolean;
  serverCreds?: { cert: Uint8Array; key: Uint8Array };
};

const LENGTH_BYTES = 4;

const schema = await readSchema(process.argv[2] ?? '');
const wanted = await readWanted(schema);
const address = { host: '127.0.0.1', port: 0 };
const { port } = await listen(await openListener(schema, wanted), address);
tell(schema, { host: address.host, port, pemCert: wanted.serverCreds?.cert ?? new Uint8Array() });

async function readWanted({ message }: Schema): Promise<Wanted> {
  let bytes = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    bytes = Buffer.concat([bytes, chunk as Buffer]);
    if (bytes.length < LENGTH_BYTES) continue;
    const end = LENGTH_BYTES + bytes.readUInt32BE();
    if (bytes.length < end) continue;
    const desc = message('ServerCompatRequest');
    return fromBinary(desc, bytes.subarray(LENGTH_BYTES, end)) as unknown as Wanted;
  }
  throw new Error('stdin ended before the request for a server');
}

function tell({ message }: Schema, response: Record<string, unknown>): void {
  const desc = message('ServerCompatResponse');
  const bytes = toBinary(desc, create(desc, response));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(bytes.length);
  process.stdout.write(Buffer.concat([length, bytes]));
}

async function openListener(of: Schema, { messageReceiveLimit, serverCreds }: Wanted) {
  const log = createLogger({ level: 'warn', fd: 2 });
  const limits = { ...DEFAULT_LIMITS, maxBodyBytes: messageReceiveLimit || DEFAULT_LIMITS.maxBodyBytes };
  const newRequestId = createRequestIds(Date.now);
  const requests = createRequests({
    newRequestId,
    monotonicMs: () => performance.now(),
    observe: () => {},
    onEnd: () => {},
  });
  const { holdResponse, refuseUnread } = createResponseMemory(limits.maxUnreadBytes);
  const notFound = async (record: RequestRecord) => {
    if (wantsRpc(record)) refuseUnknownRpc(record);
    else writeError(record, new ApiError(ErrorCode.ROUTE_NOT_FOUND, 'no RPC has this name'));
  };
  const app = createApp({
    log,
    limits,
    services: [{ desc: of.service, handlers: {} }],
    interceptors: {
      admit: async () => {},
      invoke: (call, message) => {
        const record = requests.all().find((open) => open.call === call);
        if (record === undefined) throw new Error('the call is over');
        return answerCase(of, record, call, message);
      },
      rateHeaders: () => [],
      countUnrouted: () => undefined,
      finish: () => {},
    },
    holdFor: createBodyMemory(limits.maxHeldBytes, refuseUnread),
    holdResponse,
    jsonOptions: { registry: of.registry, ignoreUnknownFields: false },
    closing: new AbortController().signal,
    rest: {
      routes: [],
      serve: (_route, record) => notFound(record as RequestRecord),
      notFound: (record) => notFound(record as RequestRecord),
      refuse: () => {},
    },
    notFound,
  });
  await app.ready();
  const tls = serverCreds && writeTls(serverCreds);
  const { server } = createListener({
    limits,
    tls,
    onConnection: () => {},
    onRequest: (req, res) => app.serve(requests.begin(req, res)),
    onClientError: (error, socket) => refuseMalformed(error, socket, newRequestId(), false),
  });
  if (tls !== undefined) rmSync(dirname(tls.keyFile), { recursive: true });
  return server;
}

function writeTls({ cert, key }: { cert: Uint8Array; key: Uint8Array }): TlsFiles {
  const dir = mkdtempSync(join(tmpdir(), 'attest-conformance-'));
  const files = { certFile: join(dir, 'cert.pem'), keyFile: join(dir, 'key.pem') };
  writeFileSync(files.certFile, cert, { mode: 0o600 });
  writeFileSync(files.keyFile, key, { mode: 0o600 });
  return files;
}
