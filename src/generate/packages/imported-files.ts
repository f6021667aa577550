import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

/** Compiled files by their paths, and the npm packages that they import. */
type Imported = { files: string[]; packages: string[] };

/**
 * The files that run and declare the modules at these paths: the modules, their declarations, and all that these import,
 * directly or not.
 */
export function findImported(modules: readonly string[]): Imported {
  const files = new Set(modules.flatMap((path) => [path, declarationOf(path)]));
  const packages = new Set<string>();
  // A set's iteration includes what is added meanwhile.
  for (const path of files) {
    const { importedFiles } = ts.preProcessFile(readFileSync(path, 'utf8'), true, true);
    for (const { fileName } of importedFiles) {
      const target = join(dirname(path), fileName);
      if (fileName.startsWith('.')) files.add(path.endsWith('.d.ts') ? declarationOf(target) : target);
      else if (!fileName.startsWith('node:')) packages.add(packageOf(fileName));
    }
  }
  return { files: [...files], packages: [...packages] };
}

function declarationOf(path: string): string {
  return path.replace(/\.js$/, '.d.ts');
}

function packageOf(specifier: string): string {
  return /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier;
}
