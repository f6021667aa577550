import { join } from 'node:path';
import { findProblem } from './finding.js';

/** The folders of our protos, each a module of `buf.yaml`. */
export const MODULES = ['proto', 'test/proto'] as const;

/** Templates of `buf generate`, each with the folder that it fills anew. */
export const TEMPLATES = [
  { template: 'buf.gen.yaml', folder: 'gen' },
  { template: 'test/buf.gen.yaml', folder: 'test/gen' },
] as const;

/** Runs the `buf` of this checkout's packages and returns what it printed when it failed. */
export function buf(root: string, ...args: string[]): string | undefined {
  return findProblem(root, join(root, 'node_modules/.bin/buf'), args);
}
