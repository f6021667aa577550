import { openCacheDir } from '../../../src/server/embedded/cache.js';
import { fetchDebianPackage } from '../../../src/server/embedded/debian-package.js';

/** Rejects unless apt has packages to unpack. A test that imports this is skipped where it has none. */
export async function assertApt(): Promise<void> {
  await fetchDebianPackage('hello', await openCacheDir());
}
