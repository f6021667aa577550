/**
 * An S3-compatible store for tests and the benchmark: verifies signatures and checksums, honours conditions on writes, and
 * streams to disk. Path style only. `README.md` of test/support tells what else there is.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerOptions } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { statedPayloadHash } from './body.js';
import { Cut, type Fault, type Faults, faultyBody, refusalOf, type SeenRequest } from './faults.js';
import type { AccessKeys } from './keys.js';
import { listen } from './listen.js';
import type { Answer, Call } from './objects.js';
import { findOperation, type Operation } from './operations.js';
import { S3Error, xmlDocument, xmlElements } from './s3-error.js';
import { verifySignature } from './sigv4.js';
import type { StoredBucket } from './store.js';

/** An answer that takes a permission is given if this says so; `action` is as IAM spells it. */
export type Permit = (request: { accessKeyId: string; action: string; key: string }) => boolean;

export type S3Options = {
  keys: AccessKeys;
  buckets: readonly string[];
  region?: string;
  tls?: ServerOptions;
  permit?: Permit;
  /** 5 MiB by default, as S3 has it. */
  minPartBytes?: number;
  /** For the signatures' time and the sessions' end. */
  now?: () => number;
};

export type S3Server = {
  url: string;
  buckets: ReadonlyMap<string, StoredBucket>;
  /** All requests since the start, or since the test emptied it. */
  requests: SeenRequest[];
  /** How requests fail from now on. */
  fail: (faults: Faults) => void;
  /** Ends every connection; nobody listens any more. */
  goAway: () => Promise<void>;
  /** Listens again, with what it has stored. */
  comeBack: () => Promise<void>;
  /** Closes it and deletes what it has stored. */
  close: () => Promise<void>;
};

type State = Required<Omit<S3Options, 'tls' | 'buckets'>> & {
  folder: string;
  isSecure: boolean;
  buckets: Map<string, StoredBucket>;
  requests: SeenRequest[];
  faults: Faults;
};

const DEFAULTS = {
  region: 'us-east-1',
  permit: () => true,
  minPartBytes: 5 * 1024 * 1024,
  now: Date.now,
  faults: () => undefined,
};

/** Starts a store on a free port of 127.0.0.1, with its files in a temporary folder. */
export async function startS3Server({ buckets, tls, ...options }: S3Options): Promise<S3Server> {
  const folder = await mkdtemp(join(tmpdir(), 'attest-s3-'));
  const state: State = {
    ...DEFAULTS,
    ...options,
    folder,
    isSecure: tls !== undefined,
    buckets: new Map(buckets.map((name) => [name, { objects: new Map(), uploads: new Map() }])),
    requests: [],
  };
  const listener = await listen((request, response) => void serve(state, request, response), tls);
  return {
    url: listener.url,
    buckets: state.buckets,
    requests: state.requests,
    fail: (faults) => {
      state.faults = faults;
    },
    goAway: listener.close,
    comeBack: listener.reopen,
    close: async () => {
      await listener.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

type Exchange = {
  request: IncomingMessage;
  response: ServerResponse;
  seen: SeenRequest;
  operation: Operation;
};

async function serve(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { url, bucket, key, query } = parseTarget(request.url ?? '/');
  const { method = '', headers } = request;
  const operation = findOperation(method, { key, query });
  const named = { operation: operation.name, method, bucket, key, query, headers };
  const seen: SeenRequest = { ...named, accessKeyId: '', bytes: 0, status: 0 };
  state.requests.push(seen);
  const fault = state.faults(seen);
  if (fault?.kind === 'hang') return void request.socket.pause();
  if (fault?.kind === 'cut' && fault.afterBytes === 0) return void request.socket.destroy();
  if (fault?.kind === 'answer') return fault.with(response);
  try {
    const answer = await answerOf(state, { request, response, seen, operation }, { fault, url });
    if (fault?.kind === 'cut-answer') throw new Cut();
    await respond(state, { response, seen }, answer);
  } catch (error) {
    if (error instanceof S3Error)
      await respond(state, { response, seen }, errorAnswer(error, seen)).catch(() => undefined);
    // The client, or a fault, ended the connection.
    else request.socket.destroy();
  }
}

async function answerOf(
  state: State,
  { request, seen, operation }: Exchange,
  { fault, url }: { fault: Fault | undefined; url: string },
): Promise<Answer> {
  const { method = '', headers } = request;
  const { isSecure, keys, region, now, folder, minPartBytes } = state;
  const payloadHash = statedPayloadHash({ headers, isSecure });
  const verifier = { service: 's3' as const, region, keys, now };
  seen.accessKeyId = verifySignature(verifier, { method, url, headers }, payloadHash);
  if (fault?.kind === 'refuse') throw refusalOf(fault);
  const bucket = state.buckets.get(seen.bucket);
  if (bucket === undefined) throw new S3Error('NoSuchBucket', 'The specified bucket does not exist');
  checkPermission(state, seen, { operation, exists: bucket.objects.has(seen.key) });
  if (fault?.kind === 'hold') await fault.until;
  const source = faultyBody(request.iterator({ destroyOnReturn: false }), fault, seen);
  const { bucket: bucketName, key, query } = seen;
  const call: Call = {
    ...{ headers, source, isSecure, bucketName, bucket, key, query, folder, now, minPartBytes },
  };
  return operation.run(call);
}

/** S3 tells who may not list a bucket not even whether it holds a key. */
function checkPermission(
  { permit }: State,
  { accessKeyId, key }: SeenRequest,
  { operation, exists }: { operation: Operation; exists: boolean },
): void {
  const mayList = permit({ accessKeyId, action: 's3:ListBucket', key });
  const isHidden = operation.action === 's3:GetObject' && !exists && !mayList;
  if (isHidden || !permit({ accessKeyId, action: operation.action, key }))
    throw new S3Error('AccessDenied', `User is not authorized to perform: ${operation.action}`);
}

function parseTarget(url: string): { url: string; bucket: string; key: string; query: URLSearchParams } {
  const [path = '', query = ''] = url.split('?', 2);
  const [, bucket = '', ...key] = path.split('/');
  return { url, bucket, key: decodeKey(key.join('/')), query: new URLSearchParams(query) };
}

function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

function errorAnswer(error: S3Error, { bucket, key }: SeenRequest): Answer {
  const { code, message, status, headers } = error;
  const region = headers['x-amz-bucket-region'];
  const members = xmlElements({ Code: code, Message: message, Region: region, BucketName: bucket, Key: key });
  return { status, headers, body: xmlDocument('Error', members) };
}

/** The answer to HEAD has no body, not even of an error. */
async function respond(
  { now }: State,
  { response, seen }: Pick<Exchange, 'response' | 'seen'>,
  answer: Answer,
): Promise<void> {
  const { status, headers = {}, body = '' } = answer;
  seen.status = status;
  const type = typeof body === 'string' && body !== '' ? { 'content-type': 'application/xml' } : {};
  response.writeHead(status, {
    ...type,
    date: new Date(now()).toUTCString(),
    'x-amz-request-id': 'TEST',
    ...headers,
  });
  if (seen.method === 'HEAD') response.end();
  else if (body instanceof Readable) await pipeline(body, response);
  else response.end(body);
}
