import { createRequire } from 'node:module';

/** Returns the version of this package. */
export function version(): string {
  const own: { version: string } = createRequire(import.meta.url)('attestation-service/package.json');
  return own.version;
}
