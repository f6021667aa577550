/** The client library for Node and browsers: calls of the service by fetch, verification of bundles and webhooks. */
import { create, type DescMessage, type JsonObject, type MessageShape } from '@bufbuild/protobuf';
import {
  ArtifactSchema,
  AttestationService,
  CreateAttestationRequestSchema,
  ListAttestationsRequestSchema,
  type Submission,
} from '../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { ExportService } from '../../gen/attestation/v1/exports_pb.js';
import { InfoService } from '../../gen/attestation/v1/service_pb.js';
import { WebhookService } from '../../gen/attestation/v1/webhooks_pb.js';
import { CALL_OPTIONS, type CallOptions, callUnary, callWith } from './call.js';
import { type ClientOptions, createCaller } from './caller.js';
import { type ArtifactSource, type HashOptions, hashArtifact } from './hash.js';
import type { Given } from './input/given.js';
import { FUNCTION, type OptionChecks, splitOptions } from './input/options.js';
import { readRequest } from './input/read-request.js';
import { wrong } from './input/wrong.js';
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
export * from '../../gen/attestation/v1/identity_pb.js';
export * from '../../gen/attestation/v1/service_pb.js';
export * from '../../gen/attestation/v1/webhooks_pb.js';
export { compareFiles, type FileFinding, type PresentFile } from '../proof/set/compare-files.js';
export { createSet } from '../proof/set/create-set.js';
export { readSet, type SetItem, type SetSummary } from '../proof/set/read-set.js';
export { SetError } from '../proof/set/set-error.js';
export { proveMember, redactSet, type SetProofJson } from '../proof/set/set-proof.js';
export { type SetVerification, verifySet } from '../proof/set/verify-set.js';
export type { Verification, VerifyOptions } from '../proof/verify/verify.js';
export type { ReceiptOptions, ReceiptVerification } from '../proof/verify/verify-receipt.js';
export type { CallOptions } from './call.js';
export type { ClientOptions } from './caller.js';
export { AttestationError } from './error.js';
export { FolderError, type FolderProblem } from './files/folder-error.js';
export { type HashFilesOptions, hashFiles } from './files/hash-files.js';
export { type ArtifactSource, type HashOptions, hashArtifact } from './hash.js';
export type { Given } from './input/given.js';
export type { Listing } from './page.js';
export type { SubmitManyItem, SubmitManyOptions, SubmitManyResult } from './submit-many.js';
export { verifyBundle, verifyReceipt } from './verify.js';
export type { WaitOptions } from './wait.js';
export { type VerifyWebhookOptions, verifyWebhook } from './webhook.js';
export type { WebhookEvent } from './webhook-event.js';
export type { WebhookHeaders } from './webhook-headers.js';
export { type WebhookVerificationCode, WebhookVerificationError } from './webhook-verification-error.js';

// biome-ignore-end lint/performance/noBarrelFile: as above

/** Options of a call that hashes an artifact first. */
type HashingOptions = CallOptions & Pick<HashOptions, 'onBytes'>;

const HASHING_OPTIONS: OptionChecks<HashingOptions> = { ...CALL_OPTIONS, onBytes: FUNCTION };

/** The members of a request, without some. */
type MembersWithout<D extends DescMessage, Names extends string> = Omit<
  Given<D>,
  Names | '$typeName' | '$unknown'
>;

/** Options of a submission. The member `schema` of `metadata` names the metadata's schema. */
export type SubmitOptions = HashingOptions &
  MembersWithout<typeof CreateAttestationRequestSchema, 'artifact' | 'metadata'> & {
    readonly metadata: JsonObject;
  };

/** Options of a list of an artifact's submissions: the other filters of a list, and `limit`, the size of a page. */
export type ListByFileOptions = HashingOptions &
  MembersWithout<typeof ListAttestationsRequestSchema, 'artifactSha256' | 'cursor'>;

/**
 * A client of the service: one member for each service of the API, with one method for each RPC. A method whose request
 * has an `id` also takes the id alone. A list can be awaited, for the first page, or iterated, for all items. Every
 * call may throw AttestationError, and TypeError before anything is sent if an argument is wrong: an unknown member or
 * option, a value of another type, or metadata that JSON does not have as it stands.
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
  const { list } = attestations;
  // Polling retries by itself, within its own timeout.
  const once = { ...caller, maxRetries: 0 };
  const get = (id: string, options: CallOptions) =>
    callUnary(once, AttestationService.method.getAttestation, { id }, options);
  return {
    attestations: {
      ...attestations,
      submitFile: async (artifact, options) => {
        const { own, others } = splitOptions(options, HASHING_OPTIONS);
        const { onBytes, ...callOptions } = own;
        const request = readWithout(CreateAttestationRequestSchema, others, ['artifact']);
        const sha256 = await hashArtifact(artifact, { signal: own.signal, onBytes });
        request.artifact = create(ArtifactSchema, { sha256 });
        return callWith(caller, AttestationService.method.createAttestation, request, callOptions);
      },
      submitMany: (items, options) => submitMany(caller, items, options),
      listByFile: async function* (artifact, options) {
        const { own, others } = splitOptions(options, HASHING_OPTIONS);
        const { onBytes, ...callOptions } = own;
        const request = readWithout(ListAttestationsRequestSchema, others, ['artifactSha256', 'cursor']);
        request.artifactSha256 = await hashArtifact(artifact, { signal: own.signal, onBytes });
        yield* list(request, callOptions);
      },
      waitUntilWitnessed: (id, options) => pollUntilWitnessed({ ...caller, get }, id, options),
    },
    batches: resource(caller, BatchService, 'Batch'),
    webhooks: resource(caller, WebhookService, 'Webhook'),
    exports: resource(caller, ExportService, 'Export'),
    service: resource(caller, InfoService, 'Info'),
  };
}

/** Reads members of a request that are given as options; those of these names the function sets itself. */
function readWithout<D extends DescMessage>(
  desc: D,
  given: object,
  names: readonly string[],
): MessageShape<D> {
  for (const name of names)
    if (Object.hasOwn(given, name)) throw wrong([name], 'is not an option of this function');
  return readRequest(desc, given);
}
