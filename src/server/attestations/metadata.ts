import { create, getOption, type JsonObject } from '@bufbuild/protobuf';
import { max_bytes as maxBytes } from '../../../gen/attestation/options/v1/options_pb.js';
import {
  CreateAttestationRequestSchema,
  type Warning,
  WarningSchema,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { jcs } from '../../proof/bytes/jcs.js';
import { errorRules } from '../../protocol/error-rules.js';
import type { Problem } from '../../protocol/problem.js';
import { ApiError } from '../core/errors.js';
import { invalidRequest } from '../json/problems.js';
import { isDeeperThan } from '../json/strict-json.js';
import type { Departure, MetadataProblems } from '../schema/problems.js';
import { type SchemaRegistry, validateMetadata } from '../schema/registry.js';

/** Metadata as sent, its canonical JSON (RFC 8785), and the name of its schema. */
export type ValidMetadata = { value: JsonObject; canonical: string; schema: string };

const MAX_METADATA_BYTES = getOption(CreateAttestationRequestSchema.field.metadata, maxBytes);
const MAX_METADATA_DEPTH = 32;

/**
 * Validates the size of a request's metadata and that it names a schema. Throws `request.invalid`. Strings that Postgres
 * cannot store were rejected when the message was read.
 */
export function readMetadata(value: JsonObject): ValidMetadata {
  if (isDeeperThan(value, MAX_METADATA_DEPTH))
    throw invalid('/metadata', `is more than ${MAX_METADATA_DEPTH} levels deep`);
  const canonical = jcs(value);
  if (Buffer.byteLength(canonical) > MAX_METADATA_BYTES)
    throw invalid('/metadata', `is larger than ${MAX_METADATA_BYTES / 1024} KiB`);
  const { schema } = value;
  if (typeof schema !== 'string' || schema === '') {
    throw invalid('/metadata/schema', schema === undefined ? 'is required' : 'must be the name of a schema');
  }
  return { value, canonical, schema };
}

/**
 * Validates metadata by the schema it names. Returns its problems, undefined if it is valid, and how it departs from the
 * schema in ways that are accepted. Throws `submission.unknown_schema` if there is no schema of that name.
 */
export function validateBySchema(
  schemas: SchemaRegistry,
  metadata: JsonObject,
): { problems?: MetadataProblems; departures: readonly Departure[] } {
  const verdict = validateMetadata(schemas, metadata);
  if (verdict.ok) return verdict;
  if (verdict.reason === 'invalid') return { problems: verdict, departures: verdict.departures };
  const { known } = verdict;
  const message = 'no metadata schema has this name; details.known lists the names that exist';
  throw new ApiError(ErrorCode.SUBMISSION_UNKNOWN_SCHEMA, message, { known });
}

/** How metadata departs from the schema it names in ways that are accepted. */
export function findDepartures(schemas: SchemaRegistry, metadata: JsonObject): readonly Departure[] {
  const verdict = validateMetadata(schemas, metadata);
  return 'departures' in verdict ? verdict.departures : [];
}

/** The error `submission.invalid_metadata`. `hint`: the remedy for the caller. */
export function invalidMetadata(schema: string, { errors, total }: MetadataProblems, hint: string): ApiError {
  const message = `the metadata fails its schema ${schema}; ${hint}`;
  return new ApiError(ErrorCode.SUBMISSION_INVALID_METADATA, message, { schema, errors, total });
}

/** The warnings of a creation: that its metadata is invalid, and each way in which it departs from its schema. */
export function metadataWarnings(
  schema: string,
  errors: readonly Problem[],
  departures: readonly Departure[],
): Warning[] {
  const warnings = departures.map(({ what, errors }) =>
    warning(schema, errors, `the metadata is accepted, though it departs from its schema ${schema}: ${what}`),
  );
  if (errors.length > 0) {
    warnings.unshift(warning(schema, errors, `the metadata fails its schema ${schema}; it can be corrected`));
  }
  return warnings;
}

function warning(schema: string, errors: readonly Problem[], message: string): Warning {
  const { code } = errorRules(ErrorCode.SUBMISSION_INVALID_METADATA);
  const details = { schema, errors: errors.map(({ path, message }) => ({ path, message })) };
  return create(WarningSchema, { code, message, details });
}

function invalid(path: string, message: string): ApiError {
  return invalidRequest([{ path, message }]);
}
