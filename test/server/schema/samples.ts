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

export const evaluation: JsonObject = {
  schema: 'evaluation.v1',
  status: 'success',
  id: 'bfG9HFhWcLJo4LMB8PmiqM',
  tool: { name: 'inspect_ai', version: '0.3.285' },
  task: { name: 'arithmetic', version: 0, file: 'arithmetic.py', num_fewshot: 0 },
  subtasks: [{ name: 'sums', version: 1.5, dataset: { name: 'sums' } }],
  model: { name: 'mockllm/model', parameters: { temperature: 0.5 } },
  dataset: { name: 'arith', location: 'arith.jsonl', samples: 3, digest: { sha256: 'ab'.repeat(32) } },
  metrics: [
    { name: 'accuracy', value: 0.75, stderr: 0.1, scorer: 'match' },
    { name: 'perplexity', value: 'NaN', task: 'sums', filter: 'none', higher_is_better: false },
  ],
  samples: { total: 6, completed: 5, errored: 1 },
  epochs: 2,
  limits: { message_limit: 10, limit: [1, 4] },
  seeds: { seed: '9007199254740993', numpy_seed: 7 },
  versions: { inspect_ai: '0.3.285' },
  revision: { type: 'git', origin: 'https://git.example/a.git', commit: '1b192c5', dirty: false },
  started_at: '2026-11-26T23:08:53+00:00',
  completed_at: '2026-11-26T23:08:55Z',
  omitted: { metrics: 12 },
  note: 'other members are allowed',
};

export const uiSnapshot: JsonObject = {
  schema: 'ui_snapshot.v1',
  kind: 'actual',
  tool: { name: 'playwright', version: '1.65.1' },
  test: { file: 'tests/home.spec.ts', title: 'home page' },
  snapshot: { name: 'home' },
  baseline: { digest: { sha256: 'ab'.repeat(32) } },
  diff: { digest: { sha256: 'cd'.repeat(32) } },
  image: { media_type: 'image/png', width: 1280, height: 720 },
  project: 'desktop',
  browser: { name: 'chromium', version: '140.0' },
  platform: 'linux',
  viewport: { width: 1280, height: 720, device_scale_factor: 1.5 },
  revision: { type: 'git', commit: '1b192c5' },
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
