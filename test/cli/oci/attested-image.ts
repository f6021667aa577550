/** Images in registries, and what the service attests of them. */
import { join } from 'node:path';
import type { Test } from 'tap';
import { type App, startApp } from '../../support/app.js';
import { type Ended, runHere } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { putImage, type TestRegistry } from '../../support/registries/image.js';

export const SIGSTORE = 'application/vnd.dev.sigstore.bundle.v0.3+json';
export const REPOSITORY = 'acme/app';

/** A service, and commands that call it. */
export async function startService(t: Test) {
  const app: App = await startApp(t);
  const { key } = await newKey(app);
  const service = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: key, PATH: process.env.PATH ?? '' };
  const attest = (args: readonly string[], env: Record<string, string> = {}): Promise<Ended> =>
    runHere(args, { env: { ...service, ...env } });

  /** Submits a digest; returns the witnessed submission's ID. */
  const submit = async (digest: string): Promise<string> => {
    const { stdout, stderr, code } = await attest(['submit', digest, '--wait', '--quiet']);
    if (code !== 0) throw new Error(stderr);
    return stdout.trim();
  };

  /** Puts an image into a registry and submits its digest. */
  const attestImage = async (registry: TestRegistry) => {
    const digest = await putImage(registry, REPOSITORY, '1.0');
    const name = `${registry.host}/${REPOSITORY}@${digest}`;
    return { digest, name, image: `oci://${name}`, id: await submit(digest) };
  };

  /** Writes a bundle to a file of the test. */
  const writeBundle = async (dir: string, id: string, format: 'json' | 'sigstore.json' = 'json') => {
    const file = join(dir, `${id}.${format}`);
    const { code, stderr } = await attest(['bundle', id, '--format', format, '-o', file]);
    if (code !== 0) throw new Error(stderr);
    return file;
  };
  return { attest, submit, attestImage, writeBundle };
}
