/** Bundles the compiled tests, which load in half the time: an app of 700 modules takes 0.5 s of CPU instead of 0.8. */
import { rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { ownUrls } from '../../../src/generate/bundle/own-urls.js';
import { readRootManifest } from '../../../src/generate/packages/manifest.js';
import { groupTests, type TestProcess } from './group-tests.js';
import type { Times } from './times.js';

/** Namespaces of esbuild: the entry point of a group, and what a test file of a group imports as `tap`. */
const [GROUP, FILE] = ['test-group', 'test-of-file'];

const RUNNER = JSON.stringify(fileURLToPath(new URL('test-file.js', import.meta.url)));

/**
 * Bundles compiled tests, given by their paths in a checkout, all in `dist/test/`, into `dist/tests/`, an entry point for each process, with chunks for
 * what several import and the packages that the program bundles too. Every module keeps the URL of its file, beside which
 * it finds what it reads and starts. There are no source maps, because tap has Node read every one of them, 0.1 s of CPU
 * a test: `npm run test:one` has them.
 *
 * @param times of the run before, by which the processes are sorted
 */
export async function bundleTests(root: string, files: readonly string[], times: Times): Promise<void> {
  const { devDependencies, optionalDependencies } = readRootManifest(root);
  const tests = join(root, 'dist/test');
  const out = join(root, 'dist/tests');
  const processes = groupTests(
    files.map((file) => relative(tests, join(root, file))),
    (path) => times[sourceIn(path)],
  );
  const urls = ownUrls((path) => JSON.stringify(pathToFileURL(path).href));
  rmSync(out, { recursive: true, force: true });
  await build({
    entryPoints: processes.map(({ name }) => ({ in: `${GROUP}:${name}`, out: name })),
    outdir: out,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: Object.keys({ ...devDependencies, ...optionalDependencies }),
    ...urls,
    plugins: [groups(tests, processes), ...(urls.plugins ?? [])],
    logLevel: 'warning',
  });
}

/** Entry points that run test files, and the tests that these files get in place of tap's. */
function groups(tests: string, processes: readonly TestProcess[]): Plugin {
  const files = new Set(processes.flatMap(({ paths }) => paths.map((path) => join(tests, path))));
  return {
    name: 'test-groups',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: new RegExp(`^${GROUP}:`) }, ({ path }) => ({
        path: path.slice(GROUP.length + 1),
        namespace: GROUP,
      }));
      onLoad({ filter: /^/, namespace: GROUP }, ({ path }) => {
        const { paths } = processes.find(({ name }) => name === path)!;
        return { contents: entryPoint(tests, paths), resolveDir: tests };
      });
      onResolve({ filter: /^tap$/ }, ({ importer }) =>
        files.has(importer) ? { path: importer, namespace: FILE } : undefined,
      );
      onLoad({ filter: /^/, namespace: FILE }, () => ({
        contents: `import { testOfFile } from ${RUNNER};\nexport default testOfFile();`,
        resolveDir: tests,
      }));
    },
  };
}

function entryPoint(tests: string, paths: readonly string[]): string {
  const files = paths.map(
    (path) => `${JSON.stringify(sourceIn(path))}: () => import(${JSON.stringify(join(tests, path))})`,
  );
  return `import { runFiles } from ${RUNNER};\nawait runFiles({${files.join(', ')}});`;
}

/** The source of a test whose path is below `test/`. */
function sourceIn(path: string): string {
  return `test/${path.replace(/\.js$/, '.ts')}`;
}
