import { fileURLToPath } from 'node:url';
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { Ajv2020, MissingRefError, type Options, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Problem } from '../../protocol/problem.js';
import { quietChoices } from './choices.js';
import { addSchemaFormats } from './formats.js';
import { type Departure, type MetadataProblems, splitTolerated, toProblems } from './problems.js';
import { annotationsIn, findPredicateType, listSchemaFiles, readSchemaFile } from './schema-files.js';
import { TOLERANCES, type Tolerance } from './tolerances.js';

/** The result of a check: without problems the metadata is valid, with departures all the same. */
type Checked = { problems?: MetadataProblems; departures: readonly Departure[] };

/** Checks metadata, its member `schema` included. */
type MetadataCheck = (metadata: JsonObject) => Checked;

/** A metadata schema: its check, and the predicate type of public statements with such metadata. */
type MetadataSchema = { check: MetadataCheck; predicateType: string | undefined };

/** The metadata schemas by name. Owned by the process, which loads them at start. */
export type SchemaRegistry = ReadonlyMap<string, MetadataSchema>;

/**
 * The result of validation: `known` are the names of all schemas, sorted; `errors` are at most 100, by place;
 * `departures` are what is accepted though the schema does not allow it.
 */
type MetadataVerdict =
  | { ok: true; departures: readonly Departure[] }
  | { ok: false; reason: 'unknown_schema'; known: string[] }
  | { ok: false; reason: 'invalid'; errors: Problem[]; total: number; departures: readonly Departure[] };

/** Schema files that cannot be used: its message has a line for each problem, with the file's path. */
export class SchemaLoadError extends Error {
  override readonly name = 'SchemaLoadError';
}

const BUILT_IN = [
  'purl',
  'slsa.provenance.v1',
  'intoto.test_result.v0.1',
  'evaluation.v1',
  'ui_snapshot.v1',
  'scitt.statement.v1',
].map((name) => fileURLToPath(new URL(`./${name}.json`, import.meta.url)));

/**
 * The built-in metadata schemas and those of the operator: the files *.json of `dir`, each named by its file's name
 * without the ending. Throws SchemaLoadError with the problems of all files together.
 */
export function loadSchemas({ dir }: { dir?: string | undefined }): SchemaRegistry {
  let compiler: ReturnType<typeof schemaCompiler> | undefined;
  const compile = (name: string, schema: unknown) => {
    compiler ??= schemaCompiler();
    return compiler(name, schema);
  };
  const problems: string[] = [];
  const schemas = new Map<string, MetadataSchema>();
  const collect = (where: string, step: () => void) => {
    try {
      step();
    } catch (error) {
      problems.push(`${where}: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  const paths = [...BUILT_IN];
  if (dir !== undefined) collect(dir, () => paths.push(...listSchemaFiles(dir)));
  for (const path of paths) {
    collect(path, () => {
      const { name, schema } = readSchemaFile(path);
      if (schemas.has(name)) throw new Error(`there is another schema named ${name}`);
      const check = isBuiltIn(path) ? later(() => compile(name, schema)) : compile(name, schema);
      schemas.set(name, { check, predicateType: findPredicateType(schema, isBuiltIn(path)) });
    });
  }
  if (problems.length > 0)
    throw new SchemaLoadError(`metadata schemas cannot be used:\n${problems.join('\n')}`);
  return new Map([...schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isBuiltIn(path: string): boolean {
  return BUILT_IN.includes(path);
}

/** Compiles at the first use: the built-in schemas take 200 ms of CPU, a seventh of the start of a process. */
function later(compile: () => MetadataCheck): MetadataCheck {
  let check: MetadataCheck | undefined;
  return (metadata) => {
    check ??= compile();
    return check(metadata);
  };
}

/** Checks metadata against the schema that its member `schema` names. Its depth must be bounded by the caller. */
export function validateMetadata(registry: SchemaRegistry, metadata: JsonObject): MetadataVerdict {
  const { schema } = metadata;
  const found = typeof schema === 'string' ? registry.get(schema) : undefined;
  if (found === undefined) return { ok: false, reason: 'unknown_schema', known: [...registry.keys()] };
  const { problems, departures } = found.check(metadata);
  return problems === undefined
    ? { ok: true, departures }
    : { ok: false, reason: 'invalid', ...problems, departures };
}

/** Makes the check of the schema of a name. Throws an Error that says what is wrong with the schema. */
type SchemaCompiler = (name: string, schema: unknown) => MetadataCheck;

const DIALECT = /^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
/**
 * Where errors are copied, gathering those of 2,000 values takes 45 ms, of the 21,000 in 64 KiB 8 s. Elsewhere those of
 * the 32,000 that 64 KiB have room for take 25 ms.
 */
const MAX_VALUES = 500;

/**
 * Makes a compiler of metadata schemas in JSON Schema 2020-12. A schema must be complete in itself, and must take the
 * member by which metadata names it. Where a schema has references that lead to further ones or around, metadata of
 * more than 500 values that fails gets its first problem only.
 */
function schemaCompiler(): SchemaCompiler {
  const meta = newAjv({});
  return (name, schema) => {
    checkDialect(schema);
    if (meta.validateSchema(schema) !== true) {
      throw new Error(
        `it is not a JSON Schema: ${meta.errorsText(meta.errors?.slice(0, 1), { dataVar: '' })}`,
      );
    }
    const check = compileCheck(schema, TOLERANCES.get(name) ?? []);
    if (check({ schema: name }).problems?.errors.some(({ path }) => path === '/schema')) {
      throw new Error(`it must allow a member schema with the value ${name}: metadata names its schema so`);
    }
    return check;
  };
}

function checkDialect(schema: unknown): asserts schema is JsonObject {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw new Error('it must hold a JSON object');
  }
  const { $schema: dialect, $async: isAsync } = schema as JsonObject;
  if (dialect !== undefined && !(typeof dialect === 'string' && DIALECT.test(dialect))) {
    throw new Error('its $schema must be https://json-schema.org/draft/2020-12/schema');
  }
  if (isAsync !== undefined) throw new Error('it must not have $async');
}

const VALID: Checked = { departures: [] };

/** Two programs: the first decides and stops at the first problem, the second finds all problems of invalid metadata. */
function compileCheck(schema: JsonObject, tolerances: readonly Tolerance[]): MetadataCheck {
  const isValid = compile(schema, false);
  const isValidThroughout = compile(schema, true);
  const maxValues = copiesErrors(isValidThroughout) ? MAX_VALUES : Number.POSITIVE_INFINITY;
  return (metadata) => {
    if (isValid(metadata)) return VALID;
    if (hasMoreValues(metadata, maxValues)) return { ...VALID, problems: toProblems(isValid.errors ?? []) };
    isValidThroughout(metadata);
    const { departures, others } = splitTolerated(isValidThroughout.errors ?? [], tolerances);
    if (departures.length > 0 && others.length === 0) return { departures };
    return { departures, problems: toProblems(others) };
  };
}

/** Whether the program adds errors by a copy of those before, as ajv does after each call of a reference. */
function copiesErrors({ source }: ValidateFunction): boolean {
  return source?.validateCode.includes('.concat(') ?? true;
}

function compile(schema: JsonObject, allErrors: boolean): ValidateFunction<JsonObject> {
  try {
    // An ajv of its own: nothing that one schema defines can clash with or be reached from another.
    const ajv = newAjv({ allErrors, meta: false, validateSchema: false, verbose: true });
    for (const keyword of annotationsIn(schema)) ajv.addKeyword(keyword);
    quietChoices(ajv);
    return ajv.compile<JsonObject>(schema);
  } catch (error) {
    if (!(error instanceof MissingRefError)) throw error;
    throw new Error(`it refers to ${error.missingRef}, which is not in the file`, { cause: error });
  }
}

function newAjv(options: Options): Ajv2020 {
  const ajv = new Ajv2020({
    ...options,
    ownProperties: true,
    code: { source: true },
    strictTypes: false,
    strictTuples: false,
    logger: false,
  });
  addSchemaFormats(ajv);
  return ajv;
}

/** Whether a value and those in it are more than `count`; looks at no more than that. */
function hasMoreValues(value: JsonValue, count: number): boolean {
  let left = count;
  const visit = (one: JsonValue): boolean => {
    if (left-- === 0) return true;
    if (typeof one !== 'object' || one === null) return false;
    return (Array.isArray(one) ? one : Object.values(one)).some(visit);
  };
  return visit(value);
}
