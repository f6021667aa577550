import { readFileSync } from 'node:fs';
import type { JsonObject } from '@bufbuild/protobuf';
import type { FastifyInstance } from 'fastify';
import { sendPublic } from '../public-answer.js';
import { referencePage } from './reference/page.js';

/** Where the descriptions of the API are served, without authentication. */
export const API_DOCUMENTS = {
  openApi: '/openapi.json',
  descriptors: '/descriptor.binpb',
  reference: '/docs',
  style: '/docs/reference.css',
} as const;

const GENERATED = new URL('../../gen/openapi/', import.meta.url);
const STYLE = new URL('./reference/reference.css', import.meta.url);
const CACHE = 'public, max-age=300';

/** The page loads its style sheet from here and nothing else from anywhere; it runs no script. */
const PAGE_POLICY =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** What is served, read once: all of it is part of the build. */
type Documents = { openApi: string; descriptors: Uint8Array; reference: string; style: string };

/**
 * Adds the OpenAPI document, the descriptors for programs that generate clients, and the API reference.
 *
 * @param baseUrl the address as the world sees it, asked for with the first request
 */
export function apiDocumentRoutes(app: FastifyInstance, { baseUrl }: { baseUrl: () => string }): void {
  let read: Documents | undefined;
  const documents = () => {
    read ??= readDocuments(baseUrl());
    return read;
  };
  app.get(API_DOCUMENTS.openApi, async (request, reply) =>
    sendPublic(request, reply, documents().openApi, 'application/json', CACHE),
  );
  app.get(API_DOCUMENTS.descriptors, async (request, reply) =>
    sendPublic(request, reply, documents().descriptors, 'application/x-protobuf', CACHE),
  );
  app.get(API_DOCUMENTS.reference, async (request, reply) => {
    void reply.header('content-security-policy', PAGE_POLICY).header('referrer-policy', 'no-referrer');
    return sendPublic(request, reply, documents().reference, 'text/html; charset=utf-8', CACHE);
  });
  app.get(API_DOCUMENTS.style, async (request, reply) =>
    sendPublic(request, reply, documents().style, 'text/css; charset=utf-8', CACHE),
  );
}

function readDocuments(baseUrl: string): Documents {
  const generated = JSON.parse(readFileSync(new URL('openapi.json', GENERATED), 'utf8')) as JsonObject;
  const document = { ...generated, servers: [{ url: baseUrl }] };
  return {
    openApi: JSON.stringify(document),
    descriptors: readFileSync(new URL('descriptor.binpb', GENERATED)),
    reference: referencePage(document),
    style: readFileSync(STYLE, 'utf8'),
  };
}
