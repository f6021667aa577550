import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { JsonValue } from '@bufbuild/protobuf';
import { withoutByteOrderMark } from '../../protocol/byte-order-mark.js';

const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const MAX_FILE_BYTES = 1024 * 1024;

/** The paths of the files *.json in a directory, sorted; hidden ones are left out. Throws when it cannot be read. */
export function listSchemaFiles(dir: string): string[] {
  const names = readdirSync(dir).filter((name) => name.endsWith('.json') && !name.startsWith('.'));
  return names.sort().map((name) => join(dir, name));
}

/** The JSON value in a file of at most 1 MiB, and its name from the file's. Throws an Error that names the mistake. */
export function readSchemaFile(path: string): { name: string; schema: unknown } {
  const name = basename(path, '.json');
  if (!NAME.test(name)) {
    throw new Error('its name must be at most 64 of a-z, 0-9, ., _ and -, from a letter or digit on');
  }
  const info = statSync(path);
  if (!info.isFile()) throw new Error('it is not a file');
  if (info.size > MAX_FILE_BYTES) throw new Error('it is larger than 1 MiB');
  return { name, schema: parse(withoutByteOrderMark(readFileSync(path, 'utf8'))) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`it is not JSON: ${(error as Error).message}`);
  }
}

const ANNOTATION = /^x-[\w$:-]+$/i;

/** The keywords of a schema's own annotations, which begin with x-. Other unknown keywords are mistakes. */
export function annotationsIn(schema: JsonValue, found: Set<string> = new Set()): Set<string> {
  if (typeof schema !== 'object' || schema === null) return found;
  for (const [name, value] of Object.entries(schema)) {
    if (!Array.isArray(schema) && ANNOTATION.test(name)) found.add(name);
    annotationsIn(value, found);
  }
  return found;
}

const PREDICATE_TYPE = 'x-predicate-type';
/** An absolute URI (RFC 3986). */
const URI = /^[a-z][a-z0-9+.-]*:[\w\-.~:/?#[\]@!$&'()*+,;=%]+$/i;
const MAX_URI_LENGTH = 512;
/** Predicates whose form is the service's own. */
const RESERVED = /^urn:attestation-service:/i;

/** The predicate type that a schema's annotation names; undefined without one. Throws an Error that names the mistake. */
export function findPredicateType(schema: unknown, isBuiltIn: boolean): string | undefined {
  const type = (schema as Record<string, unknown>)[PREDICATE_TYPE];
  if (type === undefined) return undefined;
  if (typeof type !== 'string' || type.length > MAX_URI_LENGTH || !URI.test(type))
    throw new Error(`its ${PREDICATE_TYPE} must be an absolute URI of at most ${MAX_URI_LENGTH} characters`);
  if (!isBuiltIn && RESERVED.test(type))
    throw new Error(`its ${PREDICATE_TYPE} must not begin with urn:attestation-service:`);
  return type;
}
