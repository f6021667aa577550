/** The JSON output of promptfoo: `promptfoo eval -o out.json`. */
import type { JsonObject } from '@bufbuild/protobuf';
import { UsageError } from '../../cli.js';
import {
  countOf,
  type Fields,
  fieldsOf,
  given,
  itemsOf,
  metricNumberOf,
  parseLogJson,
  textOf,
  timeOf,
} from '../log-json.js';
import { type Slice, sliceItems, sliceMembers } from './json-slices.js';
import { samplePath, type Visit } from './log-part.js';

const VERSION = 3;

/** Counts and scores of a prompt. */
const FIGURES = ['score', 'testPassCount', 'testFailCount', 'testErrorCount'];

/** Visits the results of an output, whose members these are. Returns the metadata. Throws UsageError if it is none. */
export async function readPromptfoo(
  text: Uint8Array,
  members: ReadonlyMap<string, Slice>,
  visit: Visit,
): Promise<JsonObject> {
  const results = sliceMembers(text, members.get('results')?.start ?? 0);
  const read = (among: ReadonlyMap<string, Slice>, name: string) => {
    const slice = among.get(name);
    return slice && parseLogJson(text.subarray(slice.start, slice.end), `${name} of the output`);
  };
  const version = read(results, 'version');
  if (version !== VERSION)
    throw new UsageError(
      `the output has results of version ${String(version)}: this reads version ${VERSION}`,
    );
  let total = 0;
  for (const { start, end } of sliceItems(text, results.get('results')?.start ?? text.length)) {
    const result = sliceMembers(text, start);
    const [test, prompt] = [countOf(read(result, 'testIdx')), countOf(read(result, 'promptIdx'))];
    if (test === undefined || prompt === undefined)
      throw new UsageError('the output has a result without testIdx and promptIdx');
    const path = samplePath(`test_${test}_prompt_${prompt}`);
    await visit({ path, pieces: () => [text.subarray(start, end)] });
    total++;
  }
  const outer = ['evalId', 'config', 'metadata', 'runtimeOptions'].map((name) => [name, read(members, name)]);
  const inner = ['timestamp', 'prompts', 'stats'].map((name) => [name, read(results, name)]);
  return promptfooMetadata(Object.fromEntries([...outer, ...inner]), total);
}

function promptfooMetadata(log: Fields, total: number): JsonObject {
  const [config, stats, about] = [log.config, log.stats, log.metadata].map(fieldsOf) as [
    Fields,
    Fields,
    Fields,
  ];
  const prompts = itemsOf(log.prompts).map(fieldsOf);
  const models = [...new Set(prompts.map(({ provider }) => textOf(provider)))].filter(
    (name) => name !== undefined,
  );
  const errored = countOf(stats.errors) ?? 0;
  const { tests } = config;
  const startedAt = timeOf(log.timestamp);
  const durationMs = countOf(stats.durationMs);
  const isEnded = startedAt !== undefined && durationMs !== undefined;
  return given({
    schema: 'evaluation.v1',
    status: 'success',
    id: textOf(log.evalId),
    tool: given({ name: 'promptfoo', version: textOf(about.promptfooVersion) }),
    task: { name: textOf(config.description) ?? textOf(log.evalId) ?? 'promptfoo' },
    model: { name: textOf(models.join(',')) ?? 'unknown' },
    dataset: given({ location: textOf(tests), samples: Array.isArray(tests) ? tests.length : undefined }),
    metrics: prompts.flatMap((prompt) => metricsOf(prompt, models.length > 1)),
    samples: { total, completed: Math.max(total - errored, 0), errored },
    epochs: countOf(fieldsOf(log.runtimeOptions).repeat) || undefined,
    versions: given({ promptfoo: textOf(about.promptfooVersion), node: textOf(about.nodeVersion) }),
    started_at: startedAt,
    completed_at: isEnded ? timeOf(Date.parse(startedAt) + durationMs) : undefined,
  }) as JsonObject;
}

function metricsOf({ label, provider, metrics }: Fields, hasModels: boolean): JsonObject[] {
  const found = fieldsOf(metrics);
  const figures = FIGURES.map((name) => [name, found[name]] as const);
  return [...figures, ...Object.entries(fieldsOf(found.namedScores))].flatMap(([figure, number]) => {
    const [name, value] = [textOf(figure), metricNumberOf(number)];
    if (name === undefined || value === undefined) return [];
    const model = hasModels ? textOf(provider) : undefined;
    return [given({ name, value, model, prompt: textOf(label)?.slice(0, 200) })];
  });
}
