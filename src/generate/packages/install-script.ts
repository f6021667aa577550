import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readRootManifest } from './manifest.js';

const NAME = 'install-attest.sh';

/**
 * Writes install-attest.sh to the folder `out`, with version, SHA-256 and address of the tarball that it installs. The address is
 * that of the release, if package.json at `root` has a repository, else empty. Returns the path.
 */
export function writeInstallScript({ root, out }: { root: string; out: string }, tarball: string): string {
  const { version, repository } = readRootManifest(root);
  const page = repository?.url.replace(/^git\+/, '').replace(/\.git$/, '');
  const values = {
    VERSION: version,
    SHA256: createHash('sha256').update(readFileSync(tarball)).digest('hex'),
    URL: page === undefined ? '' : `${page}/releases/download/v${version}`,
  };
  let script = readFileSync(join(root, 'src/generate/packages', NAME), 'utf8');
  for (const [name, value] of Object.entries(values)) {
    if (!/^[\w.:/+-]*$/.test(value)) throw new Error(`${NAME} cannot hold ${name}=${value}`);
    script = script.replace(`\n${name}=''\n`, `\n${name}='${value}'\n`);
  }
  const path = join(out, NAME);
  writeFileSync(path, script, { mode: 0o755 });
  return path;
}
