import type { JsonObject } from '@bufbuild/protobuf';
import { decode } from 'cborg';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { toHex } from '../../../proof/bytes/encoding.js';
import { sha256 } from '../../../proof/bytes/primitives.js';
import { encodeSign1, SIGN1_TAG, type Sign1 } from '../../../proof/cose/sign1.js';
import { ApiError } from '../../core/errors.js';
import { algorithmName, assertSignedBy } from './statement-signature.js';

/** A signed statement of SCITT. */
export type SignedStatement = {
  /** Hex SHA-256 of the statement with an empty unprotected header, in deterministic CBOR. */
  readonly digest: string;
  /** Metadata of the schema `scitt.statement.v1`. */
  readonly metadata: JsonObject;
};

/** The schema of a signed statement's metadata. */
export const STATEMENT_SCHEMA = 'scitt.statement.v1';

/** A map of CBOR. */
type CborMap = ReadonlyMap<unknown, unknown>;

// Labels of header parameters (RFC 9052, 9360, 9597) and of CWT claims (RFC 8392).
const [ALG, CRIT, CONTENT_TYPE, KID, CWT_CLAIMS, X5CHAIN] = [1, 2, 3, 4, 15, 33];
const UNDERSTOOD: ReadonlySet<unknown> = new Set([ALG, CRIT, CONTENT_TYPE, KID, CWT_CLAIMS, X5CHAIN]);
const [ISS, SUB] = [1, 2];
/** The first byte of a tagged COSE_Sign1. */
const TAG_BYTE = 0xc0 | SIGN1_TAG;
const [MAX_TEXT_BYTES, MAX_KEY_ID_BYTES] = [2048, 256];
/** U+FFFD is what the decoder makes of bytes that are no UTF-8. */
const UNFIT = /[\p{Cc}\uFFFD]/u;

/**
 * Parses a signed statement: a COSE_Sign1 with its tag, with an algorithm, an issuer and a subject in its protected header.
 * Verifies its signature if the protected header has an `x5chain`. Throws `scitt.malformed`, `scitt.bad_algorithm`,
 * `scitt.payload_missing` and `scitt.rejected`.
 */
export function readSignedStatement(bytes: Uint8Array): SignedStatement {
  const message = readSign1(bytes);
  const header = readHeader(message.protectedHeader);
  const algorithm = header.get(ALG);
  const claims = mapOf(header.get(CWT_CLAIMS), 'the CWT claims (15) of the protected header');
  const metadata = {
    schema: STATEMENT_SCHEMA,
    issuer: textOf(claims.get(ISS), 'the issuer (1) of the CWT claims'),
    subject: textOf(claims.get(SUB), 'the subject (2) of the CWT claims'),
    algorithm: algorithmName(algorithm),
    ...optional('key_id', header, KID, keyIdOf),
    ...optional('content_type', header, CONTENT_TYPE, contentTypeOf),
    ...optional('certificate_sha256', header, X5CHAIN, (chain) => {
      const certificate = firstCertificate(chain);
      assertSignedBy(certificate, algorithm, message);
      return toHex(sha256(certificate));
    }),
  };
  return { digest: toHex(sha256(encodeSign1(message))), metadata };
}

function readSign1(bytes: Uint8Array): Sign1 {
  if (bytes[0] !== TAG_BYTE) throw malformed('it does not begin with the tag of a COSE_Sign1 (18)');
  const message = decodeOne(bytes.subarray(1));
  if (!Array.isArray(message) || message.length !== 4) throw malformed('it is not an array of four');
  const [protectedHeader, unprotected, payload, signature] = message;
  mapOf(unprotected, 'the unprotected header');
  if (payload === null) {
    throw new ApiError(ErrorCode.SCITT_PAYLOAD_MISSING, 'the payload of the signed statement is detached');
  }
  return {
    protectedHeader: bytesOf(protectedHeader, 'the protected header'),
    payload: bytesOf(payload, 'the payload'),
    signature: bytesOf(signature, 'the signature'),
  };
}

function readHeader(encoded: Uint8Array): CborMap {
  const header = mapOf(decodeOne(encoded), 'the protected header');
  const critical = header.get(CRIT);
  if (critical === undefined) return header;
  if (!Array.isArray(critical) || critical.length === 0) throw malformed('crit (2) is not a list of labels');
  const unknown = critical.find((label) => !UNDERSTOOD.has(label) || !header.has(label));
  if (unknown === undefined) return header;
  throw new ApiError(
    ErrorCode.SCITT_REJECTED,
    'crit (2) lists a header parameter that is unknown or not there',
  );
}

/** Decodes one item of CBOR, with shortest and definite lengths, no label twice and no tags. Throws `scitt.malformed`. */
function decodeOne(bytes: Uint8Array): unknown {
  try {
    return decode(bytes, {
      strict: true,
      allowIndefinite: false,
      allowUndefined: false,
      useMaps: true,
      rejectDuplicateMapKeys: true,
    });
  } catch (error) {
    // Items that nest some ten thousand deep exhaust the stack.
    const reason = error instanceof RangeError ? 'its items nest too deep' : (error as Error).message;
    throw malformed(reason.replace(/^CBOR decode error: /, ''));
  }
}

function optional<T>(
  name: string,
  header: CborMap,
  label: number,
  read: (value: unknown) => T,
): Record<string, T> {
  const value = header.get(label);
  return value === undefined ? {} : { [name]: read(value) };
}

function keyIdOf(value: unknown): string {
  const keyId = bytesOf(value, 'the key id (4)');
  if (keyId.length > MAX_KEY_ID_BYTES)
    throw malformed(`the key id (4) has more than ${MAX_KEY_ID_BYTES} bytes`);
  return toHex(keyId);
}

/** A media type, or the number of a CoAP Content-Format. */
function contentTypeOf(value: unknown): string | number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff) return value;
  return textOf(value, 'the content type (3)');
}

/** An `x5chain` is one certificate, or a list of at least two. */
function firstCertificate(chain: unknown): Uint8Array {
  return bytesOf(Array.isArray(chain) ? chain[0] : chain, 'the first certificate of x5chain (33)');
}

function mapOf(value: unknown, name: string): CborMap {
  if (!(value instanceof Map)) throw malformed(`${name} is not a map`);
  for (const label of value.keys()) {
    if (!['number', 'bigint', 'string'].includes(typeof label)) {
      throw malformed(`${name} has a label that is neither an integer nor a text`);
    }
  }
  return value;
}

function bytesOf(value: unknown, name: string): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw malformed(`${name} is not a byte string`);
}

function textOf(value: unknown, name: string): string {
  if (typeof value !== 'string' || value === '') throw malformed(`${name} is not a text`);
  if (Buffer.byteLength(value) > MAX_TEXT_BYTES)
    throw malformed(`${name} has more than ${MAX_TEXT_BYTES} bytes`);
  if (UNFIT.test(value)) throw malformed(`${name} has a control character or is not UTF-8`);
  return value;
}

function malformed(reason: string): ApiError {
  return new ApiError(ErrorCode.SCITT_MALFORMED, `the body is not a signed statement: ${reason}`);
}
