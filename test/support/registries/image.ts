/** Images in a registry of the tests, put there and read by requests alone. */
import { createHash, randomBytes } from 'node:crypto';

/** A registry with the header that it wants. */
export type TestRegistry = { readonly host: string; readonly authorization?: string };

export const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Puts an image of no layers, unlike any other, under a tag. Returns its digest. */
export async function putImage(registry: TestRegistry, repository: string, tag: string): Promise<string> {
  const config = Buffer.from(
    JSON.stringify({
      architecture: 'amd64',
      os: 'linux',
      rootfs: { type: 'layers', diff_ids: [] },
      author: randomBytes(8).toString('hex'),
    }),
  );
  const started = await call(registry, 'POST', `${repository}/blobs/uploads/`);
  const location = new URL(started.headers.get('location') ?? '', started.url);
  location.searchParams.set('digest', `sha256:${sha256(config)}`);
  await call(registry, 'PUT', location.href, { body: config, type: 'application/octet-stream' });
  const descriptor = {
    mediaType: 'application/vnd.oci.image.config.v1+json',
    digest: `sha256:${sha256(config)}`,
    size: config.length,
  };
  const manifest = Buffer.from(
    JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, config: descriptor, layers: [] }),
  );
  await call(registry, 'PUT', `${repository}/manifests/${tag}`, { body: manifest, type: MANIFEST });
  return `sha256:${sha256(manifest)}`;
}

/** The JSON of a manifest, or of another path; undefined if there is none. */
export async function getJson(registry: TestRegistry, path: string): Promise<ReturnType<typeof JSON.parse>> {
  const response = await call(registry, 'GET', path, {}, [404]);
  return response.status === 404 ? undefined : JSON.parse(await response.text());
}

export async function call(
  { host, authorization }: TestRegistry,
  method: string,
  path: string,
  { body, type }: { body?: Uint8Array<ArrayBuffer>; type?: string } = {},
  expected: number[] = [],
): Promise<Response> {
  const headers = {
    accept: `${MANIFEST}, application/vnd.oci.image.index.v1+json`,
    ...(type && { 'content-type': type }),
    ...(authorization && { authorization }),
  };
  const response = await fetch(new URL(path, `http://${host}/v2/`), {
    method,
    headers,
    ...(body && { body }),
  });
  if (response.ok || expected.includes(response.status)) return response;
  throw new Error(`${method} ${path}: HTTP ${response.status} ${await response.text()}`);
}
