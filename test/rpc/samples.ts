/** A good request for every RPC. An RPC that is added without one here fails the tests that go through all of them. */
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import { CANARY } from '../support/recorder.js';
import { rpcName } from '../support/rpcs.js';

/** What requests name. */
export type Known = { artifactSha256: string; submissionId: string; batchId: string };

/** An id of a submission and of a batch that never were. */
export const NOTHING: Known = {
  artifactSha256: '5'.repeat(64),
  submissionId: 'sub_01JX5WQ3ZZZZZZZZZZZZZZZZZZ',
  batchId: 'btc_01JX5WQ4ZZZZZZZZZZZZZZZZZZ',
};

/** Metadata that passes its schema and leaves a trace wherever it should not be. */
export const METADATA = { schema: 'purl', purl: `pkg:npm/${CANARY}@1.0.0` };

const SAMPLES: Readonly<Record<string, (known: Known) => Record<string, unknown>>> = {
  'AttestationService/CreateAttestation': ({ artifactSha256 }) => creation(artifactSha256),
  'AttestationService/GetAttestation': ({ submissionId }) => ({ id: submissionId }),
  'AttestationService/ListAttestations': () => ({ limit: 200 }),
  'AttestationService/GetBundle': ({ submissionId }) => ({ id: submissionId }),
  'AttestationService/DownloadBundle': ({ submissionId }) => ({ id: submissionId, format: 'bundle.json' }),
  'BatchService/GetBatch': ({ batchId }) => ({ id: batchId }),
  'BatchService/ListBatches': () => ({ limit: 200 }),
  'InfoService/GetTrustRoots': () => ({}),
  'InfoService/GetHealth': () => ({}),
  'InfoService/GetMe': () => ({}),
};

/** The request for a method; throws when there is none. */
export function sampleOf(method: DescMethodUnary, known: Known): Record<string, unknown> {
  const sample = SAMPLES[rpcName(method)];
  if (sample === undefined) throw new Error(`test/rpc/samples.ts has no request for ${rpcName(method)}`);
  return sample(known);
}

/** The methods that there is a request for. */
export const SAMPLED: readonly string[] = Object.keys(SAMPLES);

/** A good creation. */
export function creation(
  artifactSha256: string,
  metadata: JsonObject = METADATA,
): { artifact: { sha256: string }; metadata: JsonObject } {
  return { artifact: { sha256: artifactSha256 }, metadata };
}
