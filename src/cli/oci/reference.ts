/** References to container images. */
import { UsageError } from '../cli.js';

/** An image in a registry. At least one of `tag` and `digest` is there; the digest counts. */
export type ImageReference = {
  /** Host and port, as written. */
  readonly registry: string;
  readonly repository: string;
  readonly tag?: string | undefined;
  /** `sha256:` and lower-case hex. */
  readonly digest?: string | undefined;
};

const MAX_REPOSITORY = 255;
/** Of the registries that Docker takes without one, none is guessed: a first part without dot and port is no host. */
const HOST = /^(?:localhost|(?=[^:]*\.|.*:)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::\d{1,5})?$/i;
const REPOSITORY = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Parses `[oci://]registry/repository[:tag][@sha256:hex]` (the grammar of the OCI distribution specification, with the
 * registry). Throws UsageError.
 */
export function parseReference(text: string): ImageReference {
  const wrong = (problem: string) =>
    new UsageError(`${text} is not an image, as in registry.example.com/app@sha256:<hex>: ${problem}`);
  const [named = '', digest, ...more] = text.replace(/^oci:\/\//, '').split('@');
  const slash = named.indexOf('/');
  const registry = named.slice(0, Math.max(slash, 0));
  const [repository = '', tag, ...others] = named.slice(slash + 1).split(':');
  if (!HOST.test(registry)) throw wrong('it names no registry');
  if (!URL.canParse(`https://${registry}/`)) throw wrong('its registry is no host');
  if (repository.length > MAX_REPOSITORY || !REPOSITORY.test(repository))
    throw wrong('its repository is malformed');
  if (others.length > 0 || (tag !== undefined && !TAG.test(tag))) throw wrong('its tag is malformed');
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest)))
    throw wrong('its digest is not sha256: and 64 lower-case hex digits');
  if (tag === undefined && digest === undefined) throw wrong('it has neither a digest nor a tag');
  return { registry, repository, tag, digest };
}

/** A reference by digest, as text. */
export function imageName({ registry, repository }: ImageReference, digest: string): string {
  return `${registry}/${repository}@${digest}`;
}
