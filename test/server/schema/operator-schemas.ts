/** Schemas that an operator adds as files, and what they say of metadata. */
import type { JsonObject } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { loadSchemas, type SchemaRegistry, validateMetadata } from '../../../src/server/schema/registry.js';

/** The problems of metadata, a line each; none when it is valid. */
export function problemsOf(metadata: JsonObject, schemas: SchemaRegistry): string[] {
  const verdict = validateMetadata(schemas, metadata);
  return !('errors' in verdict) ? [] : verdict.errors.map(({ path, message }) => `${path} ${message}`);
}

/** A registry with schemas of an operator, by their files' names. */
export function withSchemas(t: Test, files: Record<string, unknown>): SchemaRegistry {
  const dir = t.testdir(
    Object.fromEntries(
      Object.entries(files).map(([name, schema]) => [
        name,
        typeof schema === 'string' ? schema : JSON.stringify(schema),
      ]),
    ),
  );
  return loadSchemas({ dir });
}
