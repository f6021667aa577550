/** Finds what test files import. */
import { relative, resolve } from 'node:path';
import { build, type Metafile } from 'esbuild';

/**
 * The files that each compiled test imports, directly or not, itself included; packages are left out. All paths are from
 * `root`.
 */
export async function findImports(
  root: string,
  files: readonly string[],
): Promise<Map<string, ReadonlySet<string>>> {
  const { metafile } = await build({
    stdin: {
      contents: files.map((file) => `import ${JSON.stringify(resolve(root, file))};`).join('\n'),
      resolveDir: root,
    },
    absWorkingDir: root,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    write: false,
    metafile: true,
  });
  return new Map(files.map((file) => [file, reach(metafile, relative(root, resolve(root, file)))]));
}

function reach({ inputs }: Metafile, file: string): ReadonlySet<string> {
  const found = new Set([file]);
  for (const each of found) {
    for (const { path, external } of inputs[each]?.imports ?? []) if (!external) found.add(path);
  }
  return found;
}
