/**
 * A server with as much of Google Cloud Storage as exports use: the JSON API's objects, resumable uploads and conditions on
 * the generation, with tokens from IAM and STS.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import { failed, type GcsAnswer, json, type MediaAnswer } from './answer.js';
import {
  beginUpload,
  denied,
  findUploadProblem,
  finishUpload,
  type GcsBucket,
  mediaOf,
  receive,
  resourceOf,
  type Upload,
} from './objects.js';
import { createTokenServer, type TokenServer } from './tokens.js';

/** Chunks but the last have to be multiples of this. */
const CHUNK_STEP = 256 * 1024;

export type GcsServer = {
  url: string;
  tokens: TokenServer;
  bucket(name: string): GcsBucket;
  /** Uploads that are begun and not finished. */
  unfinished(): number;
};

type State = {
  buckets: Map<string, GcsBucket>;
  uploads: Map<string, Upload>;
  tokens: TokenServer;
  generation: number;
};

/** Starts a server on a free port of 127.0.0.1, until the test ends. */
export async function startGcsServer(
  t: Pick<Test, 'teardown'>,
  clock: () => number = Date.now,
): Promise<GcsServer> {
  const tokens = createTokenServer(clock);
  const state: State = { buckets: new Map(), uploads: new Map(), tokens, generation: 1_700_000_000_000_000 };
  const server = createServer((request, response) => {
    request.on('error', () => {});
    void answer(state, request).then(
      (answered) => send(response, answered),
      () => response.destroy(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tokens,
    unfinished: () => state.uploads.size,
    bucket: (name) => {
      const existing = state.buckets.get(name);
      if (existing !== undefined) return existing;
      const bucket: GcsBucket = { objects: new Map(), grants: new Map(), isRetained: false };
      state.buckets.set(name, bucket);
      return bucket;
    },
  };
}

function send(response: ServerResponse, { status, headers, body }: MediaAnswer): void {
  response.writeHead(status, headers).end(body);
}

async function answer(state: State, request: IncomingMessage): Promise<MediaAnswer> {
  const url = new URL(request.url ?? '/', `http://${request.headers.host}`);
  const { method = 'GET' } = request;
  const { authorization } = request.headers;
  if (method === 'PUT') return await putChunk(state, url, request);
  const body = await text(request);
  const token = state.tokens.answer({ method, path: url.pathname, authorization, body });
  if (token !== undefined) return token;
  const account = state.tokens.accountOf(authorization);
  if (account === undefined) return failed(401, 'authError', 'Invalid Credentials');
  const [, upload, name = '', rest] =
    /^(\/upload)?\/storage\/v1\/b\/([^/]+)\/o(?:\/([^/]+))?$/.exec(url.pathname) ?? [];
  const bucket = state.buckets.get(name);
  if (bucket === undefined) return failed(404, 'notFound', 'The specified bucket does not exist.');
  if (upload !== undefined) return begin(state, { url, request, body, account, name, bucket });
  const object = bucket.objects.get(decodeURIComponent(rest ?? ''));
  if (!bucket.grants.get(account)?.has('get')) return denied(account, 'get');
  if (object === undefined) return failed(404, 'notFound', `No such object: ${name}/${rest}`);
  return url.searchParams.get('alt') === 'media' ? mediaOf(object) : json(200, resourceOf(object));
}

type Begin = {
  url: URL;
  request: IncomingMessage;
  body: string;
  account: string;
  name: string;
  bucket: GcsBucket;
};

function begin(state: State, { url, request, body, account, name: bucketName, bucket }: Begin): GcsAnswer {
  if (url.searchParams.get('uploadType') !== 'resumable')
    return failed(400, 'invalid', 'This server has resumable uploads only.');
  const name = url.searchParams.get('name') ?? '';
  const ifGenerationMatch = url.searchParams.get('ifGenerationMatch');
  const problem = findUploadProblem(bucket, account, { name, ifGenerationMatch });
  if (problem !== undefined) return problem;
  const id = randomBytes(16).toString('hex');
  const contentType = String(request.headers['x-upload-content-type'] ?? 'application/octet-stream');
  const resource = JSON.parse(body) as Upload['resource'];
  state.uploads.set(id, beginUpload({ bucket: bucketName, name, ifGenerationMatch, contentType, resource }));
  url.searchParams.set('upload_id', id);
  return { status: 200, headers: { location: url.href, 'content-length': '0' }, body: '' };
}

async function putChunk(state: State, url: URL, request: IncomingMessage): Promise<GcsAnswer> {
  const id = url.searchParams.get('upload_id') ?? '';
  const upload = state.uploads.get(id);
  const account = state.tokens.accountOf(request.headers.authorization);
  if (account === undefined) return failed(401, 'authError', 'Invalid Credentials');
  if (upload === undefined) return failed(404, 'notFound', 'No such upload.');
  const range = /^bytes (\d+)-(\d+|\*)\/(\d+)$/.exec(request.headers['content-range'] ?? '');
  if (range === null || Number(range[1]) !== upload.received)
    return failed(400, 'badRequest', 'Failed to parse Content-Range header.');
  for await (const bytes of request as AsyncIterable<Buffer>) receive(upload, bytes);
  const total = Number(range[3]);
  if (upload.received < total) return incomplete(upload);
  state.uploads.delete(id);
  if (upload.received > total) return failed(400, 'badRequest', 'The upload is too long.');
  const bucket = state.buckets.get(upload.bucket);
  if (bucket === undefined) return failed(404, 'notFound', 'The specified bucket does not exist.');
  // The condition holds for the moment in which the object becomes visible.
  return (
    findUploadProblem(bucket, account, upload) ?? finishUpload(bucket, upload, String(++state.generation))
  );
}

function incomplete({ received }: Upload): GcsAnswer {
  if (received % CHUNK_STEP !== 0) return failed(400, 'badRequest', 'Chunks must be multiples of 256 KiB.');
  return { status: 308, headers: { range: `bytes=0-${received - 1}`, 'content-length': '0' }, body: '' };
}

async function text(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
