/**
 * Attaches a Sigstore bundle to an image as a referrer, in the form of cosign 3. The commit point is the manifest that
 * refers to the image, and in registries without the referrers API the index under the image's referrers tag, which is
 * written after it. A failure before leaves blobs that nothing refers to; attaching again completes it.
 */
import { SIGSTORE_BUNDLE_MEDIA_TYPE } from '../../proof/bundle/sigstore-bundle.js';
import { jcsBytes } from '../../proof/bytes/jcs.js';
import {
  type Descriptor,
  digestOf,
  findManifest,
  INDEX,
  MANIFEST,
  MAX_MANIFEST_BYTES,
  putManifest,
} from './manifest.js';
import type { PushedBundle } from './pushed-bundle.js';
import { locationOf, type Repository } from './repository.js';

const EMPTY = new TextEncoder().encode('{}');
const EMPTY_TYPE = 'application/vnd.oci.empty.v1+json';
/** Another writer may replace the index at the same time. */
const INDEX_TRIES = 3;

/** The manifest's digest, and whether it was there before. */
export type Attached = { readonly digest: string; readonly wasThere: boolean };

/** Attaches the bundle, unless it is attached. The manifest follows from bundle and image, so that it is stored once. */
export async function attachBundle(
  repository: Repository,
  image: Descriptor,
  bundle: PushedBundle,
): Promise<Attached> {
  const { bytes, descriptor } = referrer(image, bundle);
  const { digest } = descriptor;
  const head = { method: 'HEAD', to: `manifests/${digest}`, headers: { accept: MANIFEST } } as const;
  const isStored = (await repository.call(head, [404])).status !== 404;
  if (!isStored) {
    await putBlob(repository, EMPTY);
    await putBlob(repository, bundle.bytes);
    await putManifest(repository, { reference: digest, mediaType: MANIFEST, bytes });
  }
  if (await hasReferrersApi(repository, image)) return { digest, wasThere: isStored };
  return { digest, wasThere: await addToIndex(repository, image, descriptor) };
}

function referrer(image: Descriptor, { bytes: layer, predicateType, submittedAt }: PushedBundle) {
  const annotations = {
    'dev.sigstore.bundle.content': 'dsse-envelope',
    'dev.sigstore.bundle.predicateType': predicateType,
    'org.opencontainers.image.created': submittedAt,
  };
  const bytes = jcsBytes({
    schemaVersion: 2,
    mediaType: MANIFEST,
    artifactType: SIGSTORE_BUNDLE_MEDIA_TYPE,
    config: { mediaType: EMPTY_TYPE, digest: digestOf(EMPTY), size: EMPTY.length },
    layers: [{ mediaType: SIGSTORE_BUNDLE_MEDIA_TYPE, digest: digestOf(layer), size: layer.length }],
    subject: image,
    annotations,
  }) as Uint8Array<ArrayBuffer>;
  const descriptor = { mediaType: MANIFEST, digest: digestOf(bytes), size: bytes.length };
  return { bytes, descriptor: { ...descriptor, artifactType: SIGSTORE_BUNDLE_MEDIA_TYPE, annotations } };
}

/** Stores a blob unless it is there: the address to write it to comes first. */
async function putBlob(repository: Repository, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const digest = digestOf(bytes);
  const { status } = await repository.call({ method: 'HEAD', to: `blobs/${digest}` }, [404]);
  if (status !== 404) return;
  const started = await repository.call({ method: 'POST', to: 'blobs/uploads/' });
  const to = locationOf(started);
  to.searchParams.set('digest', digest);
  const headers = { 'content-type': 'application/octet-stream' };
  await repository.call({ method: 'PUT', to, headers, body: bytes });
}

/** Asks the API itself: some registries answer a manifest with OCI-Subject and have none. The list is not read. */
async function hasReferrersApi(repository: Repository, { digest }: Descriptor): Promise<boolean> {
  const request = { method: 'GET', to: `referrers/${digest}`, headers: { accept: INDEX } } as const;
  const { status, headers } = await repository.call(request, [400, 404, 405, 406, 501]);
  return status === 200 && headers.get('content-type') === INDEX;
}

/** Adds a referrer to the index under the image's referrers tag, and reads it back. Returns whether it was there. */
async function addToIndex(
  repository: Repository,
  { digest: subject }: Descriptor,
  descriptor: Descriptor,
): Promise<boolean> {
  const reference = subject.replace(':', '-');
  for (let tries = 0; ; tries++) {
    const found = await findManifest(repository, reference);
    const manifests = found?.json.manifests ?? [];
    if ((found !== undefined && found.descriptor.mediaType !== INDEX) || !Array.isArray(manifests))
      throw new Error(`the tag ${reference} of ${repository.name} is no index of referrers`);
    if (manifests.some((one) => one?.digest === descriptor.digest)) return tries === 0;
    if (tries === INDEX_TRIES)
      throw new Error(`others write the referrers of this image in ${repository.name}: push again`);
    const bytes = jcsBytes({
      schemaVersion: 2,
      mediaType: INDEX,
      ...found?.json,
      manifests: [...manifests, descriptor],
    }) as Uint8Array<ArrayBuffer>;
    if (bytes.length > MAX_MANIFEST_BYTES)
      throw new Error(`the index of referrers in ${repository.name} is full: 4 MiB`);
    await putManifest(repository, { reference, mediaType: INDEX, bytes });
  }
}
