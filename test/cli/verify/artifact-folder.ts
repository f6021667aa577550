/** A folder with an artifact, its bundle and its trust roots, for the tests of `attest verify`. */
import { join } from 'node:path';
import type { Test } from 'tap';
import { toHex } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { ARTIFACT } from '../../proof/sample.js';
import { good, trustRoots } from '../../proof/verifying.js';

/** The artifact as it may be given in place of its file. */
export const DIGEST = `sha256:${toHex(sha256(ARTIFACT))}`;

/** A folder with the artifact, its bundle and trust roots, and the arguments that verify them. */
export function folder(t: Test, more: Record<string, string> = {}) {
  const dir = t.testdir({
    artifact: Buffer.from(ARTIFACT),
    'bundle.json': JSON.stringify(good),
    'roots.json': JSON.stringify(trustRoots),
    ...more,
  });
  const at = (name: string) => join(dir, name);
  const args = ['verify', at('artifact'), '--bundle', at('bundle.json'), '--trust-roots', at('roots.json')];
  return { dir, at, args };
}
