import { fileURLToPath } from 'node:url';
import type { JsonObject } from '@bufbuild/protobuf';
import type { Problem } from '../../protocol/problem.js';
import { type MetadataCheck, schemaCompiler } from './compile.js';
import { listSchemaFiles, readSchemaFile } from './schema-files.js';

/** The metadata schemas by name. Owned by the process, which loads them at start. */
export type SchemaRegistry = ReadonlyMap<string, MetadataCheck>;

/** What validation says: `known` are the names of all schemas, sorted; `errors` are at most 100, by place. */
type MetadataVerdict =
  | { ok: true }
  | { ok: false; reason: 'unknown_schema'; known: string[] }
  | { ok: false; reason: 'invalid'; errors: Problem[]; total: number };

/** Schema files that cannot be used: its message has a line for each problem, with the file's path. */
export class SchemaLoadError extends Error {
  override readonly name = 'SchemaLoadError';
}

const BUILT_IN = ['purl', 'slsa.provenance.v1', 'intoto.test_result.v0.1'].map((name) =>
  fileURLToPath(new URL(`./${name}.json`, import.meta.url)),
);

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
  const checks = new Map<string, MetadataCheck>();
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
      if (checks.has(name)) throw new Error(`there is another schema named ${name}`);
      checks.set(name, isBuiltIn(path) ? later(() => compile(name, schema)) : compile(name, schema));
    });
  }
  if (problems.length > 0)
    throw new SchemaLoadError(`metadata schemas cannot be used:\n${problems.join('\n')}`);
  return new Map([...checks].sort(([a], [b]) => (a < b ? -1 : 1)));
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
  const check = typeof schema === 'string' ? registry.get(schema) : undefined;
  if (check === undefined) return { ok: false, reason: 'unknown_schema', known: [...registry.keys()] };
  const problems = check(metadata);
  return problems === undefined ? { ok: true } : { ok: false, reason: 'invalid', ...problems };
}
