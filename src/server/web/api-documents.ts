import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { JsonObject } from '@bufbuild/protobuf';
import type { FastifyInstance } from 'fastify';
import { handleOtherMethods, sendPublic } from '../core/http/public-response.js';
import { referencePage } from './reference/page.js';

const GENERATED = new URL('../../../gen/openapi/', import.meta.url);
const STYLE = new URL('./reference/reference.css', import.meta.url);
const CACHE = 'public, max-age=300';

/** The reference loads its style sheet from here and nothing else from anywhere; it runs no script. */
const POLICY =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A route's answer: its body, made with the first request and then kept, and its type. */
type PublicFile = { path: string; contentType: string; read: () => string | Uint8Array };

/**
 * Adds the OpenAPI document, the descriptors for programs that generate clients, and the API reference.
 *
 * @param baseUrl the address as the world sees it, asked for with the first request
 */
export function apiDocumentRoutes(app: FastifyInstance, { baseUrl }: { baseUrl: () => string }): void {
  const document = once(() => readDocument(baseUrl()));
  const files: PublicFile[] = [
    { path: '/openapi.json', contentType: 'application/json', read: () => JSON.stringify(document()) },
    {
      path: '/descriptor.binpb',
      contentType: 'application/x-protobuf',
      read: () => readFileSync(new URL('descriptor.binpb', GENERATED)),
    },
    { path: '/docs', contentType: 'text/html; charset=utf-8', read: () => referencePage(document()) },
    {
      path: '/docs/reference.css',
      contentType: 'text/css; charset=utf-8',
      read: () => readFileSync(STYLE, 'utf8'),
    },
  ];
  for (const { path, contentType, read } of files) {
    const made = once(() => {
      const bytes = Buffer.from(read());
      return { bytes, gzipped: gzipSync(bytes), contentType, cacheControl: CACHE };
    });
    app.get(path, async (request, reply) => {
      void reply.header('content-security-policy', POLICY).header('referrer-policy', 'no-referrer');
      return sendPublic(request, reply, made());
    });
    handleOtherMethods(app, path);
  }
}

/** The generated document, its server being the address it is served at. */
function readDocument(baseUrl: string): JsonObject {
  const generated = JSON.parse(readFileSync(new URL('openapi.json', GENERATED), 'utf8')) as JsonObject;
  return { ...generated, servers: [{ url: baseUrl }] };
}

/** A function that makes something when it is first called, and then has it. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
