import type { JsonObject } from '@bufbuild/protobuf';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { addSchemaFormats } from './formats.js';
import { type MetadataProblem, toProblems } from './problems.js';

/** Checks metadata, its member `schema` included; no problems mean that it is valid. */
export type MetadataCheck = (metadata: JsonObject) => MetadataProblem[];

const DIALECT = /^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

/**
 * Makes the check of a metadata schema in JSON Schema 2020-12. Throws an Error that says what is wrong with the
 * schema, which must be complete in itself and take metadata that names it.
 */
export function compileSchema(name: string, schema: unknown): MetadataCheck {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw new Error('it must hold a JSON object');
  }
  const { $schema: dialect, $async: isAsync } = schema as Record<string, unknown>;
  if (dialect !== undefined && !(typeof dialect === 'string' && DIALECT.test(dialect))) {
    throw new Error('its $schema must be https://json-schema.org/draft/2020-12/schema');
  }
  if (isAsync !== undefined) throw new Error('it must not have $async');
  const validate = newAjv().compile<JsonObject>(schema);
  const check: MetadataCheck = (metadata) =>
    validate(metadata) ? [] : toProblems(validate.errors ?? [], metadata);
  if (check({ schema: name }).some(({ path }) => path === '/schema')) {
    throw new Error(`it must allow a member schema with the value ${name}: metadata names its schema so`);
  }
  return check;
}

/** A compiler of its own for each schema: nothing that one defines can clash with or be reached from another. */
function newAjv(): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    ownProperties: true,
    strictTypes: false,
    strictTuples: false,
    logger: false,
  });
  addSchemaFormats(ajv);
  return ajv;
}
