/** Images named on the command line, and what is attached to them. */
import type { Command } from 'commander';
import type { Client } from '../../client/client.js';
import { type Cli, printError } from '../cli.js';
import { openFetch } from '../input/network.js';
import { attachBundle } from './attach.js';
import { findCredentials } from './docker-config.js';
import { type Descriptor, getImage } from './manifest.js';
import { assertAbout, type PushedBundle, readPushedBundle } from './pushed-bundle.js';
import { type ImageReference, imageName } from './reference.js';
import { openRepository, type Repository } from './repository.js';

/** Flags of commands that call registries. */
export type RegistryFlags = { readonly plainHttp?: boolean };

/** Help text about them. */
export const REGISTRY_HELP = `
Registries are called by https, those on localhost by http, with the credentials of \`docker login\` (config.json in DOCKER_CONFIG or
~/.docker, with its credential helpers). An image is best given by its digest; a tag is resolved, and the digest printed.`;

/** Adds them. */
export function addRegistryFlags(command: Command): Command {
  return command.option('--plain-http', 'call the registry by http');
}

const TIMEOUT_MS = 60_000;
const LOCAL = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

type OpenImage = { readonly repository: Repository; readonly descriptor: Descriptor; readonly name: string };

/** Finds an image; prints the digest that a tag stands for. Throws if the registry does not have it. */
export async function openImage(
  cli: Cli,
  reference: ImageReference,
  { plainHttp = false }: RegistryFlags,
  actions: 'pull' | 'pull,push' = 'pull',
): Promise<OpenImage> {
  const { registry, tag, digest } = reference;
  const repository = openRepository(reference, {
    fetch: openFetch(cli.env),
    timeoutMs: TIMEOUT_MS,
    actions,
    findCredentials: (name) => findCredentials(cli.env, name),
    isPlain: plainHttp || LOCAL.test(registry),
  });
  const descriptor = await getImage(repository, reference);
  const name = imageName(reference, descriptor.digest);
  if (digest === undefined) printError(cli, `${repository.name}:${tag} is ${name}`);
  return { repository, descriptor, name };
}

/** A bundle, and its file or submission ID. */
export type BundleSource = { readonly bundle: PushedBundle; readonly source: string };

/** The bundle of a submission. Throws what the service answers. */
export async function downloadPushed(
  { attestations }: Client,
  id: string,
  signal?: AbortSignal,
): Promise<BundleSource> {
  const { data } = await attestations.downloadBundle({ id, format: 'bundle.sigstore.json' }, { signal });
  return { source: id, bundle: readPushedBundle(data, id) };
}

/** The image by its digest, the digest of the manifest that refers to it, and whether that was there before. */
export type Pushed = { readonly name: string; readonly referrer: string; readonly wasThere: boolean };

/** Attaches a bundle to an image. Throws UsageError if the bundle is about another digest. */
export async function pushBundle(
  cli: Cli,
  reference: ImageReference,
  { bundle, source }: BundleSource,
  flags: RegistryFlags,
): Promise<Pushed> {
  // Before the registry is called.
  if (reference.digest !== undefined) assertAbout(bundle, reference.digest, source);
  const { repository, descriptor, name } = await openImage(cli, reference, flags, 'pull,push');
  assertAbout(bundle, descriptor.digest, source);
  const { digest: referrer, wasThere } = await attachBundle(repository, descriptor, bundle);
  return { name, referrer, wasThere };
}

/** What was done, as text. */
export function pushedText({ name, wasThere }: Pushed): string {
  return wasThere ? `was attached to ${name}` : `attached to ${name}`;
}
