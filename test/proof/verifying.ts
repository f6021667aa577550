/** A good bundle, what it is changed into, and its verification under its own service's trust roots. */
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { ProofBundleSchema } from '../../gen/attestation/v1/bundle_pb.js';
import { TrustRootsSchema } from '../../gen/attestation/v1/service_pb.js';
import type { SigstoreBundle } from '../../src/proof/bundle/sigstore-bundle.js';
import { type Verification, type VerifyOptions, verifyBundle } from '../../src/proof/verify/verify.js';
import { restJson } from './rest-json.js';
import { ARTIFACT, makeService, NOW, type Service } from './sample.js';
import { makeSample } from './sample-bundles.js';
import { makeTrustRoots } from './sample-trust-roots.js';

export const STEPS = [
  'shape',
  'statement',
  'signature',
  'leaf',
  'inclusion',
  'checkpoint',
  'witnesses',
  'policy',
];

const dir = t.testdir();
export const service = await makeService(join(dir, 'service'));
export const sample = await makeSample(service);
export const good = restJson(ProofBundleSchema, sample.bundle);
export const other = await makeSample(await makeService(join(dir, 'other')));
export const otherGood = restJson(ProofBundleSchema, other.bundle) as unknown as Bundle;

/** A bundle's JSON, as far as the tests change it. */
export type Bundle = {
  media_type: unknown;
  submission: JsonObject;
  batch: JsonObject;
  sigstore_bundle: SigstoreBundle;
  checkpoints: { tree_size: unknown; note: string; inclusion_proof: string[] }[];
  witnesses: {
    name: unknown;
    kind: unknown;
    tree_size: unknown;
    evidence: string;
    detail: JsonObject;
    landed_at: unknown;
  }[];
};

/** The good bundle's JSON with a change made to it. */
export function changed(change: (bundle: Bundle) => unknown): JsonObject {
  const copy = structuredClone(good);
  change(copy as unknown as Bundle);
  return copy;
}

/** A service's trust roots as its API answers them. */
export function rootsOf(of: Service, change?: Parameters<typeof makeTrustRoots>[1]): JsonObject {
  return restJson(TrustRootsSchema, makeTrustRoots(of, change));
}

export const trustRoots = rootsOf(service);

/** Verifies about the right artifact, under the right trust roots, unless told otherwise. */
export function verify(bundle: unknown, options: Partial<VerifyOptions> = {}): Promise<Verification> {
  return verifyBundle(bundle, { trustRoots, artifact: ARTIFACT, now: NOW, ...options });
}

/** The codes of all failed checks, in order. */
export function failures({ steps }: Verification): string[] {
  return steps.flatMap(({ checks }) =>
    checks.filter(({ status }) => status === 'failed').map(({ code }) => code),
  );
}

/** The codes of the checks that could not be made and that the verdict waits for. */
export function blocked({ steps }: Verification): string[] {
  return steps.flatMap(({ checks }) => checks.filter(({ blocking }) => blocking).map(({ code }) => code));
}
