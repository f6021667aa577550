/** Images named on the command line. */
import type { Command } from 'commander';
import { type Cli, printError } from '../cli.js';
import { openFetch } from '../input/network.js';
import { findCredentials } from './docker-config.js';
import { type Descriptor, getImage } from './manifest.js';
import { type ImageReference, imageName } from './reference.js';
import { openRepository, type Repository } from './repository.js';

/** Flags of commands that call registries. */
export type RegistryFlags = { readonly plainHttp?: boolean };

/** Help text about them. */
export const REGISTRY_HELP = `
Registries are called by https, those on localhost by http, with the credentials of \`docker login\` (config.json in DOCKER_CONFIG or
~/.docker, with its credential helpers). The image is best given by its digest; a tag is resolved, and the digest printed.`;

/** Adds them. */
export function addRegistryFlags(command: Command): Command {
  return command.option('--plain-http', 'call the registry by http');
}

/** An image in its registry. */
export type Image = {
  readonly repository: Repository;
  readonly descriptor: Descriptor;
  readonly name: string;
};

const TIMEOUT_MS = 60_000;
const LOCAL = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

/** Finds an image; prints the digest that a tag stands for. Throws if the registry does not have it. */
export async function openImage(
  cli: Cli,
  reference: ImageReference,
  { plainHttp = false }: RegistryFlags,
  actions: 'pull' | 'pull,push',
): Promise<Image> {
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
