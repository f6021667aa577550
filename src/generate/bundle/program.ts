import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type BuildOptions, build, buildSync } from 'esbuild';
import { collectLicenses, LICENSES } from './licenses.js';
import { ownUrls } from './own-urls.js';

const PROGRAM: BuildOptions = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  metafile: true,
};

/**
 * Bundles the compiled program at `root` with its dependencies into the folder `out`: `main.js`, the chunks that its commands load,
 * and THIRD_PARTY_LICENSES. In its package `out` is `dist/attest`.
 */
export async function bundleProgram(
  root: string,
  { out, plugins = [], ...options }: { out: string } & BuildOptions,
): Promise<void> {
  const urls = ownUrls(
    (path) => `new URL(${JSON.stringify(relative(join(root, 'dist/attest'), path))}, bundleUrl).href`,
  );
  const { metafile } = await build({
    ...PROGRAM,
    absWorkingDir: root,
    entryPoints: [join(root, 'dist/src/main.js')],
    outdir: out,
    // Commands load what they need.
    splitting: true,
    logLevel: 'warning',
    ...urls,
    plugins: [...plugins, ...(urls.plugins ?? [])],
    ...options,
  });
  writeFileSync(join(out, LICENSES), collectLicenses(root, Object.keys(metafile?.inputs ?? {})));
}

/** The code of a thread's module with those that it imports. Throws if a package is among them: its licence would be in no file. */
export function bundleThread(file: string): string {
  const { outputFiles = [], metafile } = buildSync({ ...PROGRAM, entryPoints: [file], write: false });
  const foreign = Object.keys(metafile?.inputs ?? {}).find((path) => path.includes('node_modules/'));
  if (foreign !== undefined) throw new Error(`${file} bundles ${foreign}`);
  return outputFiles.map(({ text }) => text).join('');
}
