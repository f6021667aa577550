/** The metadata of results of lm-evaluation-harness. */
import type { JsonObject } from '@bufbuild/protobuf';
import { UsageError } from '../../cli.js';
import {
  countOf,
  type Fields,
  fieldsOf,
  given,
  labelOf,
  metricNumberOf,
  scalarsOf,
  textOf,
  timeOf,
} from '../log-json.js';
import { PARAMETERS, SEEDS } from './parameters.js';

/** The metadata of a results file. Throws UsageError if it names no model or has no tasks. */
export function lmEvalMetadata(log: Fields): JsonObject {
  const config = fieldsOf(log.config);
  const results = Object.entries(fieldsOf(log.results)).map(
    ([task, found]) => [task, fieldsOf(found)] as const,
  );
  const model = textOf(log.model_name) ?? textOf(config.model);
  if (model === undefined || results.length === 0)
    throw new UsageError('the results name no model, or have no tasks');
  const configs = Object.entries(fieldsOf(log.configs));
  const tasks = configs.map(([name, found]) => taskOf(name, fieldsOf(found), log));
  const [only] = tasks;
  const total = Object.values(fieldsOf(log['n-samples'])).reduce<number>(
    (sum, found) => sum + (countOf(fieldsOf(found).effective) ?? 0),
    0,
  );
  const { dataset, ...task } =
    tasks.length === 1 && only !== undefined ? only : { name: namesOf(results), dataset: undefined };
  const version = textOf(log.lm_eval_version);
  const commit = textOf(log.git_hash);
  return given({
    schema: 'evaluation.v1',
    status: 'success',
    tool: given({ name: 'lm-evaluation-harness', version }),
    task,
    subtasks: tasks.length > 1 ? tasks : undefined,
    model: given({ name: model, parameters: scalarsOf(fieldsOf(config.gen_kwargs), PARAMETERS) }),
    dataset,
    metrics: results.flatMap(([task, found]) => metricsOf(task, found, log)),
    samples: { total, completed: total, errored: 0 },
    limits: scalarsOf(config, /^limit$/),
    seeds: scalarsOf(config, SEEDS),
    versions: given({ 'lm-evaluation-harness': version, transformers: installed(log.transformers_version) }),
    revision: commit === undefined ? undefined : { type: 'git', commit },
    started_at: timeOf(Number(log.date) * 1000),
  }) as JsonObject;
}

function namesOf(results: readonly (readonly [string, Fields])[]): string | undefined {
  return textOf(results.map(([task]) => task).join(','));
}

function taskOf(name: string, config: Fields, log: Fields) {
  const datasetName = [textOf(config.dataset_path), textOf(config.dataset_name)].filter(Boolean).join('/');
  const samples = countOf(fieldsOf(fieldsOf(log['n-samples'])[name]).original);
  const dataset = given({ name: textOf(datasetName), samples });
  return given({
    name: textOf(name),
    version: labelOf(fieldsOf(log.versions)[name]),
    num_fewshot: countOf(fieldsOf(log['n-shot'])[name]),
    dataset,
  });
}

/** Members are named `<metric>,<filter>`, and those of standard errors `<metric>_stderr,<filter>`. */
function metricsOf(task: string, found: Fields, log: Fields): JsonObject[] {
  return Object.entries(found).flatMap(([key, figure]) => {
    const [, metric = '', filter = ''] = /^(.+),([^,]*)$/s.exec(key) ?? [];
    const [name, value] = [textOf(metric), metricNumberOf(figure)];
    if (name === undefined || value === undefined || metric.endsWith('_stderr')) return [];
    const better = fieldsOf(fieldsOf(log.higher_is_better)[task])[metric];
    return [
      given({
        name,
        value,
        stderr: metricNumberOf(found[`${metric}_stderr,${filter}`]),
        task: textOf(task),
        filter: textOf(filter),
        higher_is_better: typeof better === 'boolean' ? better : undefined,
      }),
    ];
  });
}

/** A version, unless the package was not there. */
function installed(version: unknown): string | undefined {
  return version === 'N/A' ? undefined : textOf(version);
}
