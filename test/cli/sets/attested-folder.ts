/** A folder whose set was attested: set file, bundle and trust roots beside it. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { createSet } from '../../../src/proof/set/create-set.js';
import type { NotBefore } from '../../../src/proof/set/head.js';
import { makeFolder, presentOf, sortedPaths } from '../../client/files/folders.js';
import { restJson } from '../../proof/rest-json.js';
import { makeSample } from '../../proof/sample-bundles.js';
import { service, trustRoots } from '../../proof/verifying.js';

/** The text of the set of files whose content is their path, and its head. */
export function setOf(paths: readonly string[], notBefore?: NotBefore) {
  const set = createSet();
  const lines = sortedPaths(paths).map((path) =>
    set.add({ ...presentOf(path), salt: randomBytes(16).toString('hex') }),
  );
  const { text, headText, headSha256 } = set.end(notBefore);
  return { text: lines.join('') + text, headText, headSha256 };
}

/** Makes the files in the folder `art`, and attests their set. */
export async function attestFolder(t: Test, paths: readonly string[], notBefore?: NotBefore) {
  const dir = t.testdir();
  const at = (name: string) => join(dir, name);
  mkdirSync(at('art'));
  makeFolder(t, paths, at('art'));
  const { text, headText, headSha256 } = setOf(paths, notBefore);
  const { bundle } = await makeSample(service, undefined, { artifact: utf8(headText) });
  const bundleText = JSON.stringify(restJson(ProofBundleSchema, bundle));
  writeFileSync(at('run.set.json'), text);
  writeFileSync(at('run.bundle.json'), bundleText);
  writeFileSync(at('roots.json'), JSON.stringify(trustRoots));
  const trust = ['--trust-roots', at('roots.json')];
  const evidence = ['--set', at('run.set.json'), '--bundle', at('run.bundle.json'), ...trust];
  return { at, text, headSha256, bundleText, trust, evidence, art: at('art') };
}
