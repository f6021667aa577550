import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The members of the root package.json that the packages take over. */
type RootManifest = {
  name: string;
  version: string;
  description: string;
  license: string;
  /** Set where a release is made: npm compares it with the repository that the provenance names. */
  repository?: { url: string };
  engines: Record<string, string>;
  bin: Record<string, string>;
  exports: Record<string, string>;
  imports: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
};

/** The root package.json: the one source of versions. */
export function readRootManifest(root: string): RootManifest {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as RootManifest;
}

/** The entry of the client, by the path in its package and below `dist/`. */
export const CLIENT_ENTRY = 'src/client/client.js';

/** The program of the threads that hash folders, which packages start from there. */
export const HASH_THREAD = 'dist/src/client/files/hash-thread.js';

/**
 * package.json of the client. `packages` are the npm packages that it imports; a range lets a project share them with
 * others that it has. Throws if the root does not depend on one of them.
 */
export function clientManifest(root: RootManifest, packages: readonly string[]): object {
  const dependencies = packages.toSorted().map((name) => {
    const version = root.dependencies[name];
    if (version === undefined) throw new Error(`package.json has no dependency ${name}`);
    return [name, `^${version}`];
  });
  return {
    name: '@attestation-service/client',
    version: root.version,
    description: 'Calls the attestation service, verifies its webhooks and its proof bundles.',
    license: root.license,
    repository: root.repository,
    type: 'module',
    engines: root.engines,
    sideEffects: false,
    exports: {
      '.': { types: `./${CLIENT_ENTRY.replace(/\.js$/, '.d.ts')}`, default: `./${CLIENT_ENTRY}` },
      './package.json': './package.json',
    },
    imports: {
      '#primitives': {
        node: './src/proof/bytes/primitives-node.js',
        default: './src/proof/bytes/primitives-web.js',
      },
    },
    dependencies: Object.fromEntries(dependencies),
  };
}

/** package.json of the server, which has its dependencies in its bundle; no script runs at installation. */
export function serverManifest(root: RootManifest): object {
  const { name, description, optionalDependencies } = root;
  return {
    name,
    description,
    ...programMembers(root),
    optionalDependencies: withoutTools(optionalDependencies),
  };
}

/** package.json of the command line without the server, which needs no other package. */
export function cliManifest(root: RootManifest): object {
  return {
    name: '@attestation-service/cli',
    description: 'Submits files to the attestation service, and verifies and audits its proofs.',
    ...programMembers(root),
  };
}

function programMembers({
  version,
  license,
  repository,
  engines,
  bin,
  exports,
  imports,
}: RootManifest): object {
  return { version, license, repository, type: 'module', engines, bin, exports, imports };
}

/** Programs for tests, with a package per platform: npm has no optional development dependencies. */
const TOOLS = '@foundry-rs/';

function withoutTools(dependencies: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(dependencies).filter(([name]) => !name.startsWith(TOOLS)));
}
