/**
 * The smallest honest registry with the referrers API, in memory (neither npm nor Debian has one; `npm run interop` takes
 * go-containerregistry's). It does as the test says where it is told to.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { Test } from 'tap';
import { serve } from '../witnesses/openssl-tsa.js';
import { sha256 } from './image.js';

export const INDEX = 'application/vnd.oci.image.index.v1+json';

/** Answers a request in the registry's place, and returns true; or does not. */
export type Intercept = (request: IncomingMessage, response: ServerResponse) => boolean;

type Stored = { readonly type: string; readonly bytes: Buffer };

type Answer = { status: number; headers?: Record<string, string>; content?: Uint8Array };

/** What a request names, as `/v2/<repository>/<kind>/<name>?digest=<digest>`. */
type Asked = {
  method: string;
  kind: string;
  name: string;
  repository: string;
  digest: string;
  body: Buffer;
  type: string;
};

type Content = { blobs: Map<string, Buffer>; manifests: Map<string, Stored> };

/** Serves it until the test ends. `requests` are method, path and whether there was an authorization. */
export async function startReferrersRegistry(
  t: Pick<Test, 'teardown'>,
  intercept: Intercept = () => false,
): Promise<Content & { host: string; requests: string[] }> {
  const requests: string[] = [];
  const content: Content = { blobs: new Map(), manifests: new Map() };
  const { url, close } = await serve(async (request, response) => {
    const { method = '', url: path = '', headers } = request;
    requests.push(`${method} ${path}${headers.authorization === undefined ? '' : ' authorized'}`);
    if (intercept(request, response)) return;
    const { pathname, searchParams } = new URL(path, 'http://registry');
    const [, repository = '', kind = '', name = ''] =
      /^\/v2\/(.+)\/(blobs|manifests|referrers)\/(.*)$/.exec(pathname) ?? [];
    const digest = searchParams.get('digest') ?? '';
    const type = headers['content-type'] ?? '';
    const answer = answerTo(content, {
      method,
      kind,
      name,
      repository,
      digest,
      type,
      body: await buffer(request),
    });
    const { status, headers: own, content: bytes = Buffer.alloc(0) } = answer;
    response.writeHead(status, { 'content-length': bytes.length, ...own }).end(bytes);
  });
  t.teardown(close);
  return { ...content, host: new URL(url).host, requests };
}

function answerTo(content: Content, asked: Asked): Answer {
  const { method, kind, name } = asked;
  if (kind === 'blobs') return answerOfBlobs(content, asked);
  if (kind === 'manifests' && method === 'PUT') {
    const digest = `sha256:${sha256(asked.body)}`;
    for (const key of [digest, name]) content.manifests.set(key, { type: asked.type, bytes: asked.body });
    return { status: 201, headers: { 'docker-content-digest': digest } };
  }
  const found = kind === 'referrers' ? referrers(content.manifests, name) : content.manifests.get(name);
  if (found === undefined) return { status: 404 };
  const digest = { 'docker-content-digest': `sha256:${sha256(found.bytes)}` };
  const headers = { 'content-type': found.type, ...(kind === 'manifests' && digest) };
  return { status: 200, headers, content: found.bytes };
}

function answerOfBlobs({ blobs }: Content, { method, name, repository, digest, body }: Asked): Answer {
  if (method === 'POST')
    return { status: 202, headers: { location: `/v2/${repository}/blobs/uploads/1?state=a` } };
  if (method === 'PUT') {
    if (digest !== `sha256:${sha256(body)}`) return { status: 400 };
    blobs.set(digest, body);
    return { status: 201 };
  }
  const content = blobs.get(name);
  return content === undefined ? { status: 404 } : { status: 200, content };
}

/** What refers to a subject, as an index. */
function referrers(manifests: ReadonlyMap<string, Stored>, subject: string): Stored {
  const found = [...manifests].flatMap(([digest, { type, bytes }]) => {
    const { subject: of, artifactType, annotations } = JSON.parse(String(bytes));
    if (of?.digest !== subject) return [];
    return [{ mediaType: type, digest, size: bytes.length, artifactType, annotations }];
  });
  const index = { schemaVersion: 2, mediaType: INDEX, manifests: found };
  return { type: INDEX, bytes: Buffer.from(JSON.stringify(index)) };
}
