import { join } from 'node:path';
import { findProblem } from '../checks/finding.js';

/** The folders of our protos, each a module of `buf.yaml`. */
export const MODULES = ['proto', 'test/proto'] as const;

/** Templates of `buf generate`, in the order in which they are run: the later ones run code of the earlier. */
const TEMPLATES = ['buf.gen.yaml', 'buf.gen.openapi.yaml', 'test/buf.gen.yaml'] as const;

/** The protos that clients are generated from. */
const PUBLIC_PROTOS = 'proto/attestation/v1';

/** Folders that hold only generated files. `buf` empties them, so what is not made from protos is written after it. */
export const GENERATED = ['gen', 'test/gen'] as const;

/**
 * Makes everything that comes from the protos at `root` and writes it below `out`. Needs the third-party protos at
 * `root`. Returns what `buf` printed when it failed.
 */
export function generateCode(root: string, out: string): string | undefined {
  for (const template of TEMPLATES) {
    const problem = buf(root, 'generate', '--template', template, '-o', out);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/**
 * Writes the descriptors of the public protos, with comments and all that they import, to `file`. They are made by every
 * build and not kept in git, which cannot merge them. Needs the third-party protos at `root`. Returns what `buf` printed when it failed.
 */
export function buildDescriptors(root: string, file: string): string | undefined {
  return buf(root, 'build', '--path', PUBLIC_PROTOS, '--as-file-descriptor-set', '-o', file);
}

/** Runs the `buf` of this checkout's packages and returns what it printed when it failed. */
export function buf(root: string, ...args: string[]): string | undefined {
  return findProblem(root, join(root, 'node_modules/.bin/buf'), args);
}
