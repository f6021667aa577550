import {
  type CreateAttestationRequest,
  MetadataState,
  ValidationMode,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { fromHex, utf8 } from '../../../proof/bytes/encoding.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../../proof/statement/dsse.js';
import { leafOf } from '../../../proof/statement/leaf.js';
import { metadataCommitment, SALT_BYTES, statementBytes } from '../../../proof/statement/statement.js';
import { environmentName } from '../../../protocol/environment.js';
import { type Call, getPrincipal } from '../../core/call.js';
import type { Principal } from '../../core/principal.js';
import type { RandomSource } from '../../core/random.js';
import type { SchemaRegistry } from '../../schema/registry.js';
import type { NewSubmission } from '../../store/submissions/sequence-submissions.js';
import { type Idempotency, requestHash } from '../idempotency.js';
import { invalidMetadata, readMetadata, validateBySchema } from './metadata.js';

/** Signs an environment's statements: the row id of its key, the public key, and the signing on a worker thread. */
export type DsseSigner = { keyId: number; spki: Uint8Array; sign: (data: Uint8Array) => Promise<Uint8Array> };

/** Dependencies of {@link prepareSubmission}. */
export type Prepare = {
  schemas: SchemaRegistry;
  signerOf: (environment: Principal['environment']) => DsseSigner;
  /** Its first key hashes requests that have an idempotency key. */
  idempotency: Idempotency;
  /** Unix milliseconds for `submitted_at`. Throws `service.unavailable` if the clock cannot be trusted. */
  submissionClock: () => number;
  random: RandomSource;
};

/** Validates the metadata, builds and signs the statement, and hashes the leaf. Stores nothing. */
export async function prepareSubmission(
  deps: Prepare,
  request: CreateAttestationRequest,
  call: Call,
): Promise<NewSubmission> {
  const principal = getPrincipal(call);
  const { schema, value, canonical } = readMetadata(request.metadata ?? {});
  const errors = validateBySchema(deps.schemas, value);
  if (errors !== undefined && request.validation !== ValidationMode.LENIENT) {
    throw invalidMetadata(schema, errors, 'with "validation": "lenient" it would be recorded all the same');
  }
  const salt = deps.random.bytes(SALT_BYTES);
  const commitment = metadataCommitment(salt, utf8(canonical));
  const submittedAtMs = deps.submissionClock();
  const id = `sub_${deps.random.ulid(submittedAtMs)}`;
  const artifactSha256 = request.artifact?.sha256 ?? '';
  const statement = statementBytes({
    artifactSha256,
    submissionId: id,
    project: principal.projectId,
    submittedAt: new Date(submittedAtMs).toISOString(),
    environment: environmentName(principal.environment),
    schema,
    commitment,
  });
  const signer = deps.signerOf(principal.environment);
  const signed = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, statement);
  const signature = await signer.sign(signed);
  return {
    id,
    projectId: principal.projectId,
    apiKeyId: principal.apiKeyId,
    submittedAtMs,
    artifactSha256: fromHex(artifactSha256),
    schema,
    metadata: canonical,
    metadataState: errors === undefined ? MetadataState.VALID : MetadataState.INVALID,
    metadataErrors: errors === undefined ? null : JSON.stringify(errors.errors),
    salt,
    commitment: fromHex(commitment),
    dsseKeyId: signer.keyId,
    signature,
    leafHash: leafOf(signed, signature, signer.spki).hash,
    idempotency: idempotencyOf(deps, request, call),
    limits: submissionLimits(principal),
  };
}

function idempotencyOf(
  deps: Prepare,
  request: CreateAttestationRequest,
  call: Call,
): NewSubmission['idempotency'] {
  if (call.idempotencyKey === undefined) return undefined;
  return { key: call.idempotencyKey, requestHash: requestHash(deps.idempotency.keys[0], call, request) };
}

function submissionLimits({ submissionWindows }: Principal): NewSubmission['limits'] {
  const [second, hour, day] = submissionWindows;
  const limit = (window: typeof second) => window?.limit ?? 0;
  return { perSecond: limit(second), perHour: limit(hour), perDay: limit(day) };
}
