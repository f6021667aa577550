/** The client library for Node and browsers: calls of the service by fetch, verification of bundles and webhooks. */
import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import {
  AttestationService,
  type ListAttestationsRequestSchema,
  type Submission,
  type ValidationMode,
} from '../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { ExportService } from '../../gen/attestation/v1/exports_pb.js';
import { InfoService } from '../../gen/attestation/v1/service_pb.js';
import { WebhookService } from '../../gen/attestation/v1/webhooks_pb.js';
import { type CallOptions, callUnary } from './call.js';
import { type ClientOptions, createCaller } from './caller.js';
import { type ArtifactSource, hashArtifact } from './hash.js';
import { type Resource, resource } from './resource.js';
import {
  type SubmitManyItem,
  type SubmitManyOptions,
  type SubmitManyResult,
  submitMany,
} from './submit-many.js';
import { pollUntilWitnessed, type WaitOptions } from './wait.js';

// biome-ignore-start lint/performance/noBarrelFile: this is the published library's entry point
export { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
export * from '../../gen/attestation/v1/attestations_pb.js';
export * from '../../gen/attestation/v1/batches_pb.js';
export * from '../../gen/attestation/v1/bundle_pb.js';
export * from '../../gen/attestation/v1/environment_pb.js';
export { ErrorCode } from '../../gen/attestation/v1/errors_pb.js';
export * from '../../gen/attestation/v1/exports_pb.js';
export * from '../../gen/attestation/v1/service_pb.js';
export * from '../../gen/attestation/v1/webhooks_pb.js';
export { type Verification, type VerifyOptions, verifyBundle } from '../proof/verify/verify.js';
export {
  type ReceiptOptions,
  type ReceiptVerification,
  verifyReceipt,
} from '../proof/verify/verify-receipt.js';
export type { CallOptions } from './call.js';
export type { ClientOptions } from './caller.js';
export { AttestationError } from './error.js';
export { type ArtifactSource, type HashOptions, hashArtifact } from './hash.js';
export type { Listing } from './page.js';
export type { SubmitManyItem, SubmitManyOptions, SubmitManyResult } from './submit-many.js';
export type { WaitOptions } from './wait.js';
export { type VerifyWebhookOptions, verifyWebhook } from './webhook.js';
export type { WebhookEvent } from './webhook-event.js';
export type { WebhookHeaders } from './webhook-headers.js';
export { type WebhookVerificationCode, WebhookVerificationError } from './webhook-verification-error.js';
// biome-ignore-end lint/performance/noBarrelFile: as above

/** Options of a submission. The member `schema` of `metadata` names the metadata's schema. */
export type SubmitOptions = CallOptions & {
  readonly metadata: JsonObject;
  readonly validation?: ValidationMode | undefined;
  /** Called with the size in bytes of each chunk hashed. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
};

/** Options of a list of an artifact's submissions: the other filters of a list, and `limit`, the size of a page. */
export type ListByFileOptions = CallOptions &
  Omit<MessageInitShape<typeof ListAttestationsRequestSchema>, 'artifactSha256' | 'cursor' | '$typeName'> & {
    /** Called with the size in bytes of each chunk hashed. */
    readonly onBytes?: ((bytes: number) => void) | undefined;
  };

/**
 * A client of the service: one member for each service of the API, with one method for each RPC. A method whose request
 * has an `id` also takes the id alone. A list can be awaited, for the first page, or iterated, for all items. Every
 * call may throw AttestationError.
 */
export type Client = {
  readonly attestations: Resource<typeof AttestationService, 'Attestation'> & {
    /** Hashes an artifact locally and submits the hash. The artifact is not uploaded. */
    submitFile(artifact: ArtifactSource, options: SubmitOptions): Promise<Submission>;
    /**
     * Submits many hashes, up to 1,000 in a call, and yields a result for each, in their order. Each has an idempotency
     * key of its own, under which it is retried. One that fails does not keep the others from being submitted.
     */
    submitMany(
      items: Iterable<SubmitManyItem> | AsyncIterable<SubmitManyItem>,
      options?: SubmitManyOptions,
    ): AsyncIterable<SubmitManyResult>;
    /**
     * Hashes an artifact locally and yields the project's submissions of it, newest first. The artifact is not uploaded.
     */
    listByFile(artifact: ArtifactSource, options?: ListByFileOptions): AsyncIterable<Submission>;
    /**
     * Polls a submission until it is witnessed and returns it with its bundle. Keeps polling through an outage of the
     * service. Throws AttestationError: `wait.partial` or `wait.failed` if its witnesses' deadline has passed,
     * `wait.timeout`, or the error of the read.
     */
    waitUntilWitnessed(id: string, options?: WaitOptions): Promise<Submission>;
  };
  readonly batches: Resource<typeof BatchService, 'Batch'>;
  readonly webhooks: Resource<typeof WebhookService, 'Webhook'>;
  readonly exports: Resource<typeof ExportService, 'Export'>;
  readonly service: Resource<typeof InfoService, 'Info'>;
};

/** Creates a client for one API key. It holds no connection: there is nothing to close. */
export function createClient(options: ClientOptions): Client {
  const caller = createCaller(options);
  const attestations = resource(caller, AttestationService, 'Attestation');
  const { create, list } = attestations;
  // Polling retries by itself, within its own timeout.
  const once = { ...caller, maxRetries: 0 };
  const get = (id: string, options: CallOptions) =>
    callUnary(once, AttestationService.method.getAttestation, { id }, options);
  return {
    attestations: {
      ...attestations,
      submitFile: async (artifact, { metadata, validation, onBytes, ...options }) => {
        const sha256 = await hashArtifact(artifact, { signal: options.signal, onBytes });
        const request = { artifact: { sha256 }, metadata, ...(validation !== undefined && { validation }) };
        return create(request, options);
      },
      submitMany: (items, options) => submitMany(caller, items, options),
      listByFile: async function* (
        artifact,
        { signal, timeoutMs, idempotencyKey, onBytes, ...filters } = {},
      ) {
        const artifactSha256 = await hashArtifact(artifact, { signal, onBytes });
        yield* list({ ...filters, artifactSha256 }, { signal, timeoutMs, idempotencyKey });
      },
      waitUntilWitnessed: (id, options) => pollUntilWitnessed({ ...caller, get }, id, options),
    },
    batches: resource(caller, BatchService, 'Batch'),
    webhooks: resource(caller, WebhookService, 'Webhook'),
    exports: resource(caller, ExportService, 'Export'),
    service: resource(caller, InfoService, 'Info'),
  };
}
