/** A folder of files that were attested one by one, and their bundles in another. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { makeFolder } from '../../client/files/folders.js';
import { restJson } from '../../proof/rest-json.js';
import { LOG_INDEX, PROJECT, type Service } from '../../proof/sample.js';
import { makeSamples } from '../../proof/sample-bundles.js';
import { type Bundle, service, trustRoots } from '../../proof/verifying.js';

/** The bundles of files whose content is their path, as one batch: all have the same checkpoints and evidence. */
export async function bundlesOf(
  paths: readonly string[],
  by: Service = service,
  project = PROJECT,
): Promise<(JsonObject & Bundle)[]> {
  const subjects = paths.map((path, i) => ({
    artifact: utf8(path),
    submissionId: `sub_01JX5WQ3${String(i).padStart(18, '0')}`,
    project,
    logIndex: LOG_INDEX + i,
  }));
  const samples = await makeSamples(by, subjects);
  return samples.map(({ bundle }) => restJson(ProofBundleSchema, bundle) as JsonObject & Bundle);
}

/** Makes the files in the folder `art`, and the bundle of each as `proofs/<path>.bundle.json`. */
export async function attestFiles(t: Test, paths: readonly string[], dir: string = t.testdir()) {
  const at = (name: string) => join(dir, name);
  mkdirSync(at('art'));
  makeFolder(t, paths, at('art'));
  writeFileSync(at('roots.json'), JSON.stringify(trustRoots));
  const write = (name: string, content: unknown) => {
    mkdirSync(dirname(at(name)), { recursive: true });
    writeFileSync(at(name), typeof content === 'string' ? content : JSON.stringify(content));
  };
  const bundles = await bundlesOf(paths);
  for (const [i, path] of paths.entries()) write(`proofs/${path}.bundle.json`, bundles[i]);
  const trust = ['--trust-roots', at('roots.json')];
  const args = ['verify', at('art'), '--bundles', at('proofs'), ...trust];
  return { at, write, bundles, trust, args, art: at('art'), proofs: at('proofs') };
}
