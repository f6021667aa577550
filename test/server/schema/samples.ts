/** Metadata that is valid by the built-in schemas, and ways to break it. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { loadSchemas, validateMetadata } from '../../../src/server/schema/registry.js';

export const registry = loadSchemas({});

/** The problems of metadata, a line each; none when it is valid. */
export function problemsOf(metadata: JsonObject): string[] {
  const verdict = validateMetadata(registry, metadata);
  if (verdict.ok) return [];
  if (verdict.reason === 'unknown_schema') return ['unknown schema'];
  return verdict.errors.map(({ path, message }) => `${path} ${message}`);
}

export const provenance: JsonObject = {
  schema: 'slsa.provenance.v1',
  buildDefinition: {
    buildType: 'https://actions.github.io/buildtypes/workflow/v1',
    externalParameters: { workflow: { ref: 'refs/heads/main' } },
    internalParameters: { github: {} },
    resolvedDependencies: [
      { uri: 'git+https://git.example/a@refs/heads/main', digest: { gitCommit: 'c27d339ee6' } },
      { name: 'seed', content: 'AAEC', mediaType: 'text/plain', annotations: { a: 1 } },
      { digest: { sha256: 'fe4fe40ac7' }, downloadLocation: 'https://example.com/a' },
    ],
    future: true,
  },
  runDetails: {
    builder: { id: 'urn:example:builder', version: { runner: '2.3' }, builderDependencies: [] },
    metadata: {
      invocationId: '7',
      startedOn: '2024-01-31T12:00:00Z',
      finishedOn: '2024-01-31t13:00:00.5+01:00',
    },
    byproducts: [{ uri: 'file:///log' }],
  },
  note: 'other members are allowed',
};

export const testResult: JsonObject = {
  schema: 'intoto.test_result.v0.1',
  result: 'PASSED',
  configuration: [{ uri: 'https://example.com/ci.yml', digest: { sha256: 'ab' } }],
  url: 'https://example.com/runs/1',
  passedTests: ['a', 'b'],
  warnedTests: [],
  failedTests: [],
};

/** A copy with one value put at a place, or with the member there taken away. */
export function changed(metadata: JsonObject, path: string, value?: JsonValue): JsonObject {
  const copy = structuredClone(metadata);
  const steps = path.split('/').slice(1);
  const last = steps.pop() as string;
  const parent = steps.reduce<JsonObject>((at, step) => at[step] as JsonObject, copy);
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return copy;
}
