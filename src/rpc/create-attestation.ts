import { create, type JsonObject } from '@bufbuild/protobuf';
import {
  type CreateAttestationRequest,
  MetadataState,
  ValidationMode,
  type Warning,
  WarningSchema,
} from '../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { ErrorCode } from '../../gen/attestation/v1/errors_pb.js';
import { type Call, getPrincipal } from '../call.js';
import { ApiError, errorRules } from '../errors.js';
import { isDeeperThan } from '../json/strict-json.js';
import type { Principal } from '../principal.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../proof/dsse.js';
import { fromHex, utf8 } from '../proof/encoding.js';
import { jcs } from '../proof/jcs.js';
import { leafOf } from '../proof/leaf.js';
import { metadataCommitment, SALT_BYTES, statementBytes } from '../proof/statement.js';
import type { RandomSource } from '../random.js';
import { type SchemaRegistry, validateMetadata } from '../schema/registry.js';
import type { KeyRing } from '../secret-key.js';
import type { NewSubmission } from '../store/accept.js';
import { requestHash } from './idempotent.js';

/** The key that signs an environment's statements: its row's id, its public part, and the signing, off the main thread. */
export type DsseSigner = { keyId: number; spki: Uint8Array; sign: (data: Uint8Array) => Promise<Uint8Array> };

/** What makes a request into a row ready to be stored. */
export type Prepare = {
  schemas: SchemaRegistry;
  signerOf: (environment: Principal['environment']) => DsseSigner;
  /** Sub-keys for hashing requests under idempotency keys; the first is used. */
  idempotencyKeys: KeyRing;
  clock: () => number;
  random: RandomSource;
};

const MAX_METADATA_BYTES = 64 * 1024;
const MAX_METADATA_DEPTH = 32;

/** Checks the metadata, makes and signs the statement, and hashes the leaf. Stores nothing. */
export async function prepareSubmission(
  deps: Prepare,
  request: CreateAttestationRequest,
  call: Call,
): Promise<NewSubmission> {
  const principal = getPrincipal(call);
  const metadata = request.metadata ?? {};
  const canonical = canonicalMetadata(metadata);
  const checked = checkMetadata(deps.schemas, metadata, request.validation);
  const salt = deps.random.bytes(SALT_BYTES);
  const commitment = metadataCommitment(salt, utf8(canonical));
  const submittedAtMs = deps.clock();
  const id = `sub_${deps.random.ulid(submittedAtMs)}`;
  const artifactSha256 = (request.artifact?.sha256 ?? '').toLowerCase();
  const statement = statementBytes({
    artifactSha256,
    submissionId: id,
    project: principal.projectId,
    submittedAt: new Date(submittedAtMs).toISOString(),
    environment: principal.environment === Environment.LIVE ? 'live' : 'test',
    schema: checked.schema,
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
    schema: checked.schema,
    metadata: canonical,
    metadataState: checked.errors.length === 0 ? MetadataState.VALID : MetadataState.INVALID,
    metadataErrors: checked.errors.length === 0 ? null : JSON.stringify(checked.errors),
    salt,
    commitment: fromHex(commitment),
    dsseKeyId: signer.keyId,
    signature,
    leafHash: leafOf(signed, signature, signer.spki).hash,
    idempotency: idempotencyOf(deps, request, call),
    limits: submissionLimits(principal),
  };
}

/** The metadata's JCS text, within its bounds. Texts that cannot be stored are refused before, on every surface. */
function canonicalMetadata(metadata: JsonObject): string {
  if (isDeeperThan(metadata, MAX_METADATA_DEPTH))
    throw invalid('/metadata', `is more than ${MAX_METADATA_DEPTH} levels deep`);
  const canonical = jcs(metadata);
  if (Buffer.byteLength(canonical) > MAX_METADATA_BYTES) throw invalid('/metadata', 'is larger than 64 KiB');
  return canonical;
}

type CheckedMetadata = { schema: string; errors: { path: string; message: string }[] };

function checkMetadata(schemas: SchemaRegistry, metadata: JsonObject, mode: ValidationMode): CheckedMetadata {
  const { schema } = metadata;
  if (typeof schema !== 'string' || schema === '') {
    throw invalid('/metadata/schema', schema === undefined ? 'is required' : 'must be the name of a schema');
  }
  const result = validateMetadata(schemas, metadata);
  if (result.ok) return { schema, errors: [] };
  if (result.reason === 'unknown_schema') {
    throw new ApiError(ErrorCode.SUBMISSION_UNKNOWN_SCHEMA, 'no metadata schema has this name', {
      known: result.known,
    });
  }
  if (mode === ValidationMode.LENIENT) return { schema, errors: result.errors };
  throw new ApiError(
    ErrorCode.SUBMISSION_INVALID_METADATA,
    `the metadata fails its schema ${schema}; with "validation": "lenient" it would be recorded all the same`,
    { schema, errors: result.errors },
  );
}

/** The warning that a lenient creation answers with, or none. */
export function metadataWarnings(
  schema: string,
  errors: readonly { path: string; message: string }[],
): Warning[] {
  if (errors.length === 0) return [];
  const { code } = errorRules(ErrorCode.SUBMISSION_INVALID_METADATA);
  const details = { schema, errors: errors.map(({ path, message }) => ({ path, message })) };
  const message = `the metadata fails its schema ${schema}; it can be corrected`;
  return [create(WarningSchema, { code, message, details })];
}

function idempotencyOf(
  deps: Prepare,
  request: CreateAttestationRequest,
  call: Call,
): NewSubmission['idempotency'] {
  if (call.idempotencyKey === undefined) return undefined;
  return { key: call.idempotencyKey, requestHash: requestHash(deps.idempotencyKeys[0], call, request) };
}

function submissionLimits({ submissionWindows }: Principal): NewSubmission['limits'] {
  const [second, hour, day] = submissionWindows;
  const limit = (window: typeof second) => window?.limit ?? 0;
  return { perSecond: limit(second), perHour: limit(hour), perDay: limit(day) };
}

function invalid(path: string, message: string): ApiError {
  return new ApiError(ErrorCode.REQUEST_INVALID, `${path} ${message}`, { errors: [{ path, message }] });
}
