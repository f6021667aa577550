import { createRequire } from 'node:module';

/** Returns the version of the package that this program is in. */
export function version(): string {
  const own: { version: string } = createRequire(import.meta.url)('#package.json');
  return own.version;
}
