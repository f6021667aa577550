/** The generators of REST clients, and what their clients run on. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { run, runOrThrow } from '../command.js';

/** Packages of PyPI: a generator, and what the clients of openapi-generator import. */
export const CLIENT_PACKAGES = [
  'openapi-python-client==0.29.1',
  'pydantic==2.14.4',
  'python-dateutil==4.0.0',
  'urllib3==2.8.0',
];

/** A program of the Go module proxy, as `INSTALLED` of tools.ts has them. */
export const OAPI_CODEGEN = {
  name: 'oapi-codegen',
  path: 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen',
  version: 'v2.8.2',
};

/** The newest that run on Node 20. */
const NPM_PACKAGES = ['@hey-api/openapi-ts@0.95.0', 'typescript@5.9.3'];
const OPENAPI_GENERATOR = 'org.openapitools:openapi-generator-cli:7.25.0';

/**
 * Installs hey-api with a TypeScript compiler into the folder `npm`, and openapi-generator into `folder`.
 *
 * @returns shell lines that run each, by its name
 */
export async function installGenerators(folder: string, npm: string): Promise<Record<string, string>> {
  const listed = await run('npm', ['ls', '--prefix', npm]);
  if (!NPM_PACKAGES.every((name) => listed.output.includes(name))) {
    await mkdir(npm, { recursive: true });
    await runOrThrow('npm', ['install', '--silent', '--no-audit', '--prefix', npm, ...NPM_PACKAGES]);
  }
  const jar = join(folder, `${OPENAPI_GENERATOR.split(':').slice(1).join('-')}.jar`);
  if ((await run('test', ['-f', jar])).code !== 0) {
    const into = [`-Dartifact=${OPENAPI_GENERATOR}`, `-DoutputDirectory=${folder}`];
    await runOrThrow('mvn', ['--quiet', '--batch-mode', 'dependency:copy', ...into]);
  }
  const bin = join(npm, 'node_modules/.bin');
  return {
    'openapi-ts': `exec "${bin}/openapi-ts" "$@"`,
    'tsc-of-clients': `exec "${bin}/tsc" "$@"`,
    // Each generation is short: without the optimising compiler it takes half the time.
    'openapi-generator': `exec java -XX:TieredStopAtLevel=1 -jar "${jar}" "$@"`,
  };
}
