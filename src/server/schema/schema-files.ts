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
