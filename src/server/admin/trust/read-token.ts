import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { parseJson } from '../../json/strict-json.js';

/** Why a token is not trusted, for the operator's log. */
export class NotTrusted extends Error {
  override readonly name = 'NotTrusted';
}

/** Deeper JSON is in no token of an identity provider. */
const MAX_DEPTH = 16;

/**
 * Reads the claims of a JWT in compact form (RFC 7519) without verifying its signature. Throws NotTrusted if header or
 * claims are not one JSON object in UTF-8, or have a member twice, of which another reader might take the other one.
 */
export function readToken(token: string): JsonObject {
  const [header = '', payload = ''] = token.split('.');
  readObject(header, 'header');
  return readObject(payload, 'payload');
}

function readObject(part: string, name: string): JsonObject {
  const bytes = Buffer.from(part, 'base64url');
  let value: JsonValue;
  try {
    value = parseJson(bytes, { maxDepth: MAX_DEPTH });
  } catch (error) {
    throw new NotTrusted(`the token's ${name} cannot be read: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new NotTrusted(`the token's ${name} is not a JSON object`);
  return value;
}
