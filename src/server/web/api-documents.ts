import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { JsonObject } from '@bufbuild/protobuf';
import type { FastifyInstance } from 'fastify';
import { handleOtherMethods, sendPublic } from '../core/http/public-response.js';

const GENERATED = new URL('../../../gen/openapi/', import.meta.url);
const CACHE = 'public, max-age=300';

const POLICY = "default-src 'none'; frame-ancestors 'none'";

/** A route's answer: its body, made with the first request and then kept, and its type. */
type PublicFile = { path: string; contentType: string; read: () => string | Uint8Array };

/**
 * Adds the OpenAPI document, and the descriptors for programs that generate clients.
 *
 * @param baseUrl the address as the world sees it, asked for with the first request
 */
export function apiDocumentRoutes(app: FastifyInstance, { baseUrl }: { baseUrl: () => string }): void {
  const files: PublicFile[] = [
    {
      path: '/openapi.json',
      contentType: 'application/json',
      read: () => JSON.stringify(readDocument(baseUrl())),
    },
    {
      path: '/descriptor.binpb',
      contentType: 'application/x-protobuf',
      read: () => readFileSync(new URL('descriptor.binpb', GENERATED)),
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
