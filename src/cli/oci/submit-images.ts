/** `attest submit --oci`: images whose digests are submitted. */
import type { Command } from 'commander';
import type { Client } from '../../client/client.js';
import { type Cli, printError, UsageError } from '../cli.js';
import { collectPattern } from '../sets/folder-files.js';
import type { Input } from '../submit/inputs.js';
import {
  addRegistryFlags,
  downloadPushed,
  openImage,
  type Pushed,
  pushBundle,
  pushedText,
  REGISTRY_HELP,
  type RegistryFlags,
} from './images.js';
import { type ImageReference, parseReference } from './reference.js';

/** Flags that name images. */
export type ImageFlags = RegistryFlags & { readonly oci?: readonly string[]; readonly push?: boolean };

/** Help text about them. */
export const IMAGE_HELP = `
--oci submits an image in a registry, by the digest of its manifest; the default metadata is its package URL (pkg:oci/…). With
--wait --push its bundle is attached to it as soon as it is witnessed, as \`attest push\` does.${REGISTRY_HELP}`;

/** Adds them. */
export function addImageFlags(command: Command): Command {
  return addRegistryFlags(command)
    .option('--oci <image>', 'submit registry/repository@sha256:<hex>, too; repeatable', collectPattern)
    .option('--push', 'attach the bundle to each image; needs --wait');
}

/** An input that is an image, found by its digest. */
export type ImageInput = Input & { readonly sha256: string; readonly image: ImageReference };

/**
 * Finds the images of --oci. Throws UsageError before the first call if a reference is malformed or flags do not go together, and
 * what the registries answer.
 */
export async function imageInputs(
  cli: Cli,
  { oci = [], push, wait, ...flags }: ImageFlags & { readonly wait?: boolean },
): Promise<ImageInput[]> {
  if (push && (oci.length === 0 || !wait)) throw new UsageError('--push needs --oci and --wait');
  const inputs: ImageInput[] = [];
  for (const reference of oci.map(parseReference)) {
    const { descriptor, name } = await openImage(cli, reference, flags);
    const { digest } = descriptor;
    const purl = packageUrl(reference, digest);
    inputs.push({
      label: name,
      name,
      bytes: 0,
      sha256: digest.replace('sha256:', ''),
      describe: (_, given) => given ?? { schema: 'purl', purl },
      image: { ...reference, digest },
    });
  }
  return inputs;
}

/** The package URL of type oci: its name is the last part of the repository. */
function packageUrl({ registry, repository, tag }: ImageReference, digest: string): string {
  const name = repository.slice(repository.lastIndexOf('/') + 1);
  const url = encodeURIComponent(`${registry}/${repository}`);
  const ofTag = tag === undefined ? '' : `&tag=${tag}`;
  return `pkg:oci/${name}@${encodeURIComponent(digest)}?repository_url=${url}${ofTag}`;
}

/** Returns what attaches the bundle of a submission to an image; undefined without --push. */
export function imagePusher(
  cli: Cli,
  client: Client,
  { push, ...flags }: ImageFlags,
): ((image: ImageReference, id: string, signal: AbortSignal) => Promise<Pushed>) | undefined {
  if (!push) return undefined;
  return async (image, id, signal) => pushBundle(cli, image, await downloadPushed(client, id, signal), flags);
}

/** Returns what attaches the bundle of one submission to all images among the inputs, and says so; undefined without --push. */
export function imagesPusher(
  cli: Cli,
  inputs: readonly Input[],
  { client, flags, signal }: { client: Client; flags: ImageFlags; signal: AbortSignal },
): ((id: string) => Promise<void>) | undefined {
  const push = imagePusher(cli, client, flags);
  if (push === undefined) return undefined;
  return async (id) => {
    for (const { image } of inputs) {
      if (image !== undefined && !signal.aborted) printError(cli, pushedText(await push(image, id, signal)));
    }
  };
}
