/** Manifests and what refers to them. */
import { createHash } from 'node:crypto';
import type { Repository } from './repository.js';

/** A content descriptor (OCI image specification). */
export type Descriptor = {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly artifactType?: string;
  readonly annotations?: Readonly<Record<string, string>>;
};

export const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
export const INDEX = 'application/vnd.oci.image.index.v1+json';
const DOCKER = 'application/vnd.docker.distribution.manifest';
const MANIFEST_TYPES = [INDEX, MANIFEST, `${DOCKER}.list.v2+json`, `${DOCKER}.v2+json`];

/** What every registry has to take (OCI distribution specification). */
export const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;

/** The digest of bytes, as descriptors have it. */
export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/**
 * Fetches the manifest that a tag or digest names; returns its descriptor, and its JSON. Undefined if there is none. Throws
 * if its bytes have another digest than the one that was asked for, or that the registry says they have.
 */
export async function findManifest(
  repository: Repository,
  reference: string,
): Promise<{ descriptor: Descriptor; json: Readonly<Record<string, unknown>> } | undefined> {
  const headers = { accept: MANIFEST_TYPES.join(', ') };
  const to = `manifests/${reference}`;
  const request = { method: 'GET', to, headers, maxBytes: MAX_MANIFEST_BYTES } as const;
  const answer = await repository.call(request, [404]);
  if (answer.status === 404) return undefined;
  const digest = digestOf(answer.body);
  const claimed = reference.includes(':') ? reference : answer.headers.get('docker-content-digest');
  if (claimed !== null && claimed !== digest)
    throw new Error(`the manifest that ${repository.name} has for ${reference} is another one: ${digest}`);
  const json = answer.json();
  const type = json?.mediaType ?? answer.headers.get('content-type');
  if (json === undefined || typeof type !== 'string' || !MANIFEST_TYPES.includes(type))
    throw new Error(`what ${repository.name} has for ${reference} is no manifest of an image`);
  return { descriptor: { mediaType: type, digest, size: answer.body.length }, json };
}

/** Finds the image that a reference names. Throws if there is none. */
export async function getImage(
  repository: Repository,
  { tag, digest }: { tag?: string | undefined; digest?: string | undefined },
): Promise<Descriptor> {
  const reference = digest ?? tag ?? '';
  const found = await findManifest(repository, reference);
  if (found === undefined) throw new Error(`there is no image ${reference} in ${repository.name}`);
  return found.descriptor;
}

/** Stores a manifest under its digest or a tag. Throws if the registry says that it stored something else. */
export async function putManifest(
  repository: Repository,
  { reference, mediaType, bytes }: { reference: string; mediaType: string; bytes: Uint8Array<ArrayBuffer> },
): Promise<void> {
  const headers = { 'content-type': mediaType };
  const { headers: stored } = await repository.call({
    method: 'PUT',
    to: `manifests/${reference}`,
    headers,
    body: bytes,
  });
  const claimed = stored.get('docker-content-digest');
  if (claimed !== null && claimed !== digestOf(bytes))
    throw new Error(`${repository.name} stored another manifest: ${claimed}`);
}
