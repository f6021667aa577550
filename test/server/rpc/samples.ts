/** A good request for every RPC. An RPC that is added without one here fails the tests that go through all of them. */
import type { DescMethodUnary, JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Test } from 'tap';
import {
  AttestationService,
  type CreateAttestationRequestSchema,
  ValidationMode,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { DestinationKind, ExportService } from '../../../gen/attestation/v1/exports_pb.js';
import { EventType, WebhookService } from '../../../gen/attestation/v1/webhooks_pb.js';
import type { Surface } from '../../support/calling/rpc-clients.js';
import { rpcName } from '../../support/calling/rpcs.js';
import { BUCKET, OWNER, startStore } from '../../support/exports/s3/fixture.js';
import { CANARY } from '../../support/judging/recorder.js';
import { signedStatement } from '../../support/scitt/signed-statement.js';

/** What requests name. */
export type Known = {
  artifactSha256: string;
  submissionId: string;
  /** A submission whose metadata is invalid, which nothing but its correction names. */
  correctableId: string;
  /** One that nothing but its redaction names. */
  redactableId: string;
  batchId: string;
  webhookId: string;
  /** Of that subscription. */
  deliveryId: string;
  /** Another subscription, which nothing but its deletion names. */
  deletableWebhookId: string;
  /** The URL of an S3-compatible store with the bucket of the tests. */
  storeUrl: string;
  exportId: string;
  /** Another export, which nothing but its deletion names. */
  deletableExportId: string;
  /** A token of a workload. */
  token: string;
};

/** Ids of what never was. */
export const NOTHING: Known = {
  artifactSha256: '5'.repeat(64),
  submissionId: 'sub_01JX5WQ3ZZZZZZZZZZZZZZZZZZ',
  correctableId: 'sub_01JX5WQ8ZZZZZZZZZZZZZZZZZZ',
  redactableId: 'sub_01JX5WQ9ZZZZZZZZZZZZZZZZZZ',
  batchId: 'btc_01JX5WQ4ZZZZZZZZZZZZZZZZZZ',
  webhookId: 'whk_01JX5WQ5ZZZZZZZZZZZZZZZZZZ',
  deliveryId: 'dlv_01JX5WQ6ZZZZZZZZZZZZZZZZZZ',
  deletableWebhookId: 'whk_01JX5WQ7ZZZZZZZZZZZZZZZZZZ',
  storeUrl: 'http://127.0.0.1:9',
  exportId: 'exp_01JX5WQAZZZZZZZZZZZZZZZZZZ',
  deletableExportId: 'exp_01JX5WQBZZZZZZZZZZZZZZZZZZ',
  token: `e30.${Buffer.from('{"iss":"https://issuer.example.com"}').toString('base64url')}.AA`,
};

/** Nobody listens there. */
const WEBHOOK = { url: 'http://127.0.0.1:9/hook', events: [EventType.ATTESTATION_WITNESSED] };

/** Metadata that passes its schema and leaves a trace wherever it should not be. */
export const METADATA = { schema: 'purl', purl: `pkg:npm/${CANARY}@1.0.0` };

/** The same for metadata that fails its schema. */
export const INVALID = { schema: 'purl', note: CANARY };

/** Valid metadata of another schema. */
export const SLSA = {
  schema: 'slsa.provenance.v1',
  buildDefinition: { buildType: `https://example.com/${CANARY}`, externalParameters: {} },
  runDetails: { builder: { id: 'https://example.com/builder' } },
};

/** An idempotency key that several callers use for calls of a method. */
export const sharedKey = (method: string) => `everybody-uses-this-key-for-${method}`;

const SAMPLES: Readonly<Record<string, (known: Known) => Record<string, unknown>>> = {
  'AttestationService/CreateAttestation': ({ artifactSha256 }) => buildCreation(artifactSha256),
  'AttestationService/BatchCreateAttestations': ({ artifactSha256 }) => ({
    items: [
      creation(artifactSha256),
      { ...buildCreation(artifactSha256), idempotencyKey: sharedKey('CreateAttestation') },
    ],
  }),
  'AttestationService/GetAttestation': ({ submissionId }) => ({ id: submissionId }),
  'AttestationService/UpdateAttestation': ({ correctableId }) => ({ id: correctableId, metadata: METADATA }),
  'AttestationService/DeleteAttestation': ({ redactableId }) => ({ id: redactableId }),
  'AttestationService/ListAttestations': () => ({ limit: 200 }),
  'AttestationService/GetBundle': ({ submissionId }) => ({ id: submissionId }),
  'AttestationService/DownloadBundle': ({ submissionId }) => ({ id: submissionId, format: 'bundle.json' }),
  'ScittService/RegisterStatement': () => ({
    statement: { contentType: 'application/cose', data: signedStatement({ subject: CANARY }) },
  }),
  'ScittService/GetEntry': ({ submissionId }) => ({ id: submissionId }),
  'BatchService/GetBatch': ({ batchId }) => ({ id: batchId }),
  'BatchService/ListBatches': () => ({ limit: 200 }),
  'WebhookService/CreateWebhook': () => WEBHOOK,
  'WebhookService/GetWebhook': ({ webhookId }) => ({ id: webhookId }),
  'WebhookService/ListWebhooks': () => ({ limit: 200 }),
  'WebhookService/UpdateWebhook': ({ webhookId }) => ({ id: webhookId, ...WEBHOOK }),
  'WebhookService/DeleteWebhook': ({ deletableWebhookId }) => ({ id: deletableWebhookId }),
  'WebhookService/RotateWebhookSecret': ({ webhookId }) => ({ id: webhookId }),
  'WebhookService/TestWebhook': ({ webhookId }) => ({ id: webhookId }),
  'WebhookService/ListWebhookDeliveries': ({ webhookId }) => ({ id: webhookId, limit: 200 }),
  'WebhookService/GetWebhookDelivery': ({ webhookId, deliveryId }) => ({ id: webhookId, deliveryId }),
  'WebhookService/RedeliverWebhookDelivery': ({ webhookId, deliveryId }) => ({ id: webhookId, deliveryId }),
  'WebhookService/RedeliverFailedWebhookDeliveries': ({ webhookId }) => ({
    id: webhookId,
    since: timestampFromMs(0),
  }),
  'ExportService/CreateExport': ({ storeUrl }) => exportTo(storeUrl),
  'ExportService/GetExport': ({ exportId }) => ({ id: exportId }),
  'ExportService/ListExports': () => ({ limit: 200 }),
  'ExportService/TestExport': ({ exportId }) => ({ id: exportId }),
  'ExportService/DeleteExport': ({ deletableExportId }) => ({ id: deletableExportId }),
  'TokenService/ExchangeToken': ({ token }) => ({ token }),
  'InfoService/GetTrustRoots': () => ({}),
  'InfoService/GetHealth': () => ({}),
  'InfoService/GetMe': () => ({}),
};

/** The request for a method; throws when there is none. */
export function sampleOf(method: DescMethodUnary, known: Known): Record<string, unknown> {
  const sample = SAMPLES[rpcName(method)];
  if (sample === undefined)
    throw new Error(`test/server/rpc/samples.ts has no request for ${rpcName(method)}`);
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

/** A good creation that names a build, which leaves a trace as its metadata does. */
export function buildCreation(artifactSha256: string) {
  return { ...creation(artifactSha256), build: `ci-${CANARY}` };
}

/** A creation whose metadata fails its schema, and is recorded all the same. */
export function invalidCreation(artifactSha256: string, metadata: JsonObject = INVALID) {
  return { ...creation(artifactSha256, metadata), validation: ValidationMode.LENIENT };
}

/** Makes what correction and redaction name, by REST. */
export async function makeChangeable(
  { call }: Surface,
  apiKey: string,
): Promise<Pick<Known, 'correctableId' | 'redactableId'>> {
  const { createAttestation } = AttestationService.method;
  const make = (message: MessageInitShape<typeof CreateAttestationRequestSchema>) =>
    call(createAttestation, message, apiKey);
  const first = await make(invalidCreation('6'.repeat(64)));
  const second = await make(creation('7'.repeat(64)));
  return { correctableId: String(first.response.id), redactableId: String(second.response.id) };
}

/** An export to a store with the bucket of the tests. */
export function exportTo(storeUrl: string) {
  const destination = {
    kind: DestinationKind.S3,
    bucket: BUCKET,
    prefix: 'samples',
    endpoint: storeUrl,
    ...OWNER,
  };
  return { destination };
}

/** Makes what export RPCs name, by REST: two exports to a store of the test. */
export async function makeExports(
  t: Pick<Test, 'teardown'>,
  { call }: Surface,
  apiKey: string,
  headers: Record<string, string> = {},
): Promise<Pick<Known, 'storeUrl' | 'exportId' | 'deletableExportId'>> {
  const { createExport } = ExportService.method;
  const { url: storeUrl } = await startStore(t);
  const first = await call(createExport, exportTo(storeUrl), apiKey, headers);
  const second = await call(createExport, exportTo(storeUrl), apiKey);
  return { storeUrl, exportId: String(first.response.id), deletableExportId: String(second.response.id) };
}

/** Makes what webhook RPCs name, by REST: two subscriptions, the first with a delivery. */
export async function makeWebhooks(
  { call }: Surface,
  apiKey: string,
  headers: Record<string, string> = {},
): Promise<Pick<Known, 'webhookId' | 'deliveryId' | 'deletableWebhookId'>> {
  const { createWebhook, testWebhook } = WebhookService.method;
  const first = await call(createWebhook, WEBHOOK, apiKey, headers);
  const second = await call(createWebhook, WEBHOOK, apiKey);
  const webhookId = String(first.response.id);
  const test = await call(testWebhook, { id: webhookId }, apiKey);
  return { webhookId, deliveryId: String(test.response.id), deletableWebhookId: String(second.response.id) };
}
