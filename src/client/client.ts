/** The client library: calls of the service over fetch, in Node and in a browser. */
import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import { createConnectTransport } from '@connectrpc/connect-web';
import {
  AttestationService,
  type CreateAttestationRequestSchema,
  type ListAttestationsRequestSchema,
  type ListAttestationsResponse,
  type Submission,
  type ValidationMode,
} from '../../gen/attestation/v1/attestations_pb.js';
import {
  type Batch,
  BatchService,
  type ListBatchesRequestSchema,
  type ListBatchesResponse,
} from '../../gen/attestation/v1/batches_pb.js';
import type { ProofBundle } from '../../gen/attestation/v1/bundle_pb.js';
import { type Health, InfoService, type Me, type TrustRoots } from '../../gen/attestation/v1/service_pb.js';
import type { HttpBody } from '../../gen/google/api/httpbody_pb.js';
import { type Caller, type CallOptions, callUnary } from './call.js';
import { type ArtifactSource, hashArtifact } from './hash.js';
import { pollUntilWitnessed, type WaitOptions } from './wait.js';

// biome-ignore lint/performance/noBarrelFile: this is the published library's entry point
export { type Verification, type VerifyOptions, verifyBundle } from '../proof/verify.js';
export { AttestationError } from './error.js';

/** Where the service is, and how it is called. What is optional is there for tests and unusual places. */
export type ClientOptions = {
  /** For example `https://attest.example.com`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Of each attempt; 30 s when left out. */
  readonly timeoutMs?: number;
  /** Attempts after the first; 4 when left out, 0 for none. */
  readonly maxRetries?: number;
  readonly fetch?: typeof globalThis.fetch;
  readonly now?: () => number;
  readonly random?: () => number;
  readonly delay?: (ms: number, signal?: AbortSignal) => Promise<void>;
};

/** What is said of an artifact that is submitted; `metadata` names its schema in `schema`. */
export type SubmitOptions = CallOptions & {
  readonly metadata: JsonObject;
  readonly validation?: ValidationMode | undefined;
  /** Called with the number of bytes of each piece that was hashed. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
};

/** The formats of a bundle as a file. */
export type BundleFormat = 'bundle.json' | 'bundle.sigstore.json' | 'bundle.tlog-proof';

/** The service as seen by an API key. Every call may throw AttestationError. */
export type Client = {
  readonly attestations: {
    create(
      request: MessageInitShape<typeof CreateAttestationRequestSchema>,
      options?: CallOptions,
    ): Promise<Submission>;
    get(id: string, options?: CallOptions): Promise<Submission>;
    list(
      request?: MessageInitShape<typeof ListAttestationsRequestSchema>,
      options?: CallOptions,
    ): Promise<ListAttestationsResponse>;
    getBundle(id: string, options?: CallOptions): Promise<ProofBundle>;
    /** The bundle as a file: `data` is its bytes. */
    downloadBundle(id: string, format: BundleFormat, options?: CallOptions): Promise<HttpBody>;
    /** Hashes an artifact here and submits the hash: the artifact itself goes nowhere. */
    submitFile(artifact: ArtifactSource, options: SubmitOptions): Promise<Submission>;
    /** As `pollUntilWitnessed`. */
    waitUntilWitnessed(id: string, options?: WaitOptions): Promise<Submission>;
  };
  readonly batches: {
    get(id: string, options?: CallOptions): Promise<Batch>;
    list(
      request?: MessageInitShape<typeof ListBatchesRequestSchema>,
      options?: CallOptions,
    ): Promise<ListBatchesResponse>;
  };
  readonly service: {
    trustRoots(options?: CallOptions): Promise<TrustRoots>;
    health(options?: CallOptions): Promise<Health>;
    me(options?: CallOptions): Promise<Me>;
  };
};

/** A client for one API key. It holds no connection of its own: there is nothing to close. */
export function createClient(options: ClientOptions): Client {
  const caller = createCaller(options);
  return {
    attestations: attestationCalls(caller),
    batches: {
      get: (id, options) => callUnary(caller, BatchService.method.getBatch, { id }, options),
      list: (request = {}, options) => callUnary(caller, BatchService.method.listBatches, request, options),
    },
    service: {
      trustRoots: (options) => callUnary(caller, InfoService.method.getTrustRoots, {}, options),
      health: (options) => callUnary(caller, InfoService.method.getHealth, {}, options),
      me: (options) => callUnary(caller, InfoService.method.getMe, {}, options),
    },
  };
}

function attestationCalls(caller: Caller): Client['attestations'] {
  const { createAttestation, getAttestation, listAttestations, getBundle, downloadBundle } =
    AttestationService.method;
  const get = (id: string, options?: CallOptions) => callUnary(caller, getAttestation, { id }, options);
  return {
    create: (request, options) => callUnary(caller, createAttestation, request, options),
    get,
    list: (request = {}, options) => callUnary(caller, listAttestations, request, options),
    getBundle: (id, options) => callUnary(caller, getBundle, { id }, options),
    downloadBundle: (id, format, options) => callUnary(caller, downloadBundle, { id, format }, options),
    submitFile: async (artifact, { metadata, validation, ...options }) => {
      const sha256 = await hashArtifact(artifact, options);
      const request = { artifact: { sha256 }, metadata, ...(validation !== undefined && { validation }) };
      return callUnary(caller, createAttestation, request, options);
    },
    waitUntilWitnessed: (id, options) => pollUntilWitnessed({ ...caller, get }, id, options),
  };
}

/** What calls with these options are made with. */
export function createCaller(options: ClientOptions): Caller {
  const { protocol } = new URL(options.baseUrl);
  if (protocol !== 'https:' && protocol !== 'http:') throw new TypeError('baseUrl must be http or https');
  if (!/^[\x21-\x7e]+$/.test(options.apiKey)) throw new TypeError('apiKey is not an API key');
  return {
    transport: createConnectTransport({
      baseUrl: options.baseUrl.replace(/\/+$/, ''),
      useBinaryFormat: true,
      ...(options.fetch && { fetch: options.fetch }),
    }),
    apiKey: options.apiKey,
    timeoutMs: options.timeoutMs ?? 30_000,
    maxRetries: options.maxRetries ?? 4,
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    delay: options.delay ?? wait,
  };
}

function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
}
