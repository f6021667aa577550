/** The metadata of a log of inspect_ai: names are those of its EvalSpec, EvalResults and EvalStats. */
import type { JsonObject } from '@bufbuild/protobuf';
import { UsageError } from '../../cli.js';
import {
  countOf,
  type Fields,
  fieldsOf,
  given,
  itemsOf,
  labelOf,
  metricNumberOf,
  scalarsOf,
  textOf,
  textsOf,
  timeOf,
} from '../log-json.js';
import { PARAMETERS, SEEDS } from './parameters.js';

/** Samples of a log: each epoch of each counts. */
export type SampleCounts = { readonly total: number; readonly errored: number };

const LIMIT = /^(?:\w+_)?limit$/;

const STATUSES: ReadonlySet<unknown> = new Set(['success', 'error', 'cancelled']);

/** The metadata of a log's header, without its samples. Throws UsageError if it is none, or the evaluation has not ended. */
export function inspectMetadata(header: Fields, { total, errored }: SampleCounts): JsonObject {
  const { status, version } = header;
  const [spec, stats, results] = [header.eval, header.stats, header.results].map(fieldsOf) as [
    Fields,
    Fields,
    Fields,
  ];
  if (status === 'started')
    throw new UsageError('the evaluation has not ended: its log has the status started');
  if (!STATUSES.has(status))
    throw new UsageError(`the log of version ${String(version)} has no known status`);
  const config = fieldsOf(spec.config);
  const asked = { ...fieldsOf(spec.model_generate_config), ...fieldsOf(fieldsOf(header.plan).config) };
  const { name, location, samples } = fieldsOf(spec.dataset);
  const packages = fieldsOf(spec.packages);
  return given({
    schema: 'evaluation.v1',
    status: String(status),
    id: textOf(spec.eval_id),
    tool: given({ name: 'inspect_ai', version: textOf(packages.inspect_ai) }),
    task: given({
      name: textOf(spec.task),
      version: labelOf(spec.task_version),
      file: textOf(spec.task_file),
    }),
    model: given({ name: textOf(spec.model), parameters: scalarsOf(asked, PARAMETERS) }),
    dataset: given({ name: textOf(name), location: textOf(location), samples: countOf(samples) }),
    metrics: itemsOf(results.scores).flatMap((score) => metricsOf(fieldsOf(score))),
    samples: given({
      total: countOf(results.total_samples) ?? total,
      completed: countOf(results.completed_samples) ?? total - errored,
      errored,
    }),
    epochs: countOf(config.epochs),
    limits: limitsOf(config),
    seeds: scalarsOf({ ...asked, ...config }, SEEDS),
    versions: textsOf(packages),
    revision: revisionOf(fieldsOf(spec.revision)),
    started_at: timeOf(stats.started_at),
    completed_at: timeOf(stats.completed_at),
  }) as JsonObject;
}

/** The metrics of a scorer. A standard error is that of the mean, which `accuracy` and `mean` are. */
function metricsOf(score: Fields): JsonObject[] {
  const metrics = Object.values(fieldsOf(score.metrics)).map(fieldsOf);
  const isMean = ({ name }: Fields) => name === 'accuracy' || name === 'mean';
  const stderr = metrics.some(isMean) ? metrics.find(({ name }) => name === 'stderr') : undefined;
  return metrics.flatMap((metric) => {
    const [name, value] = [textOf(metric.name), metricNumberOf(metric.value)];
    if (name === undefined || value === undefined || metric === stderr) return [];
    const error = isMean(metric) ? metricNumberOf(stderr?.value) : undefined;
    return [given({ name, value, stderr: error, scorer: textOf(score.name) ?? textOf(score.scorer) })];
  });
}

function revisionOf({ type, origin, commit, dirty }: Fields): JsonObject | undefined {
  const hash = textOf(commit);
  if (hash === undefined) return undefined;
  const isDirty = typeof dirty === 'boolean' ? dirty : undefined;
  return given({
    type: type === 'git' ? 'git' : undefined,
    origin: textOf(origin),
    commit: hash,
    dirty: isDirty,
  });
}

/** Bounds are numbers; `limit` may also be the first and the last sample. */
function limitsOf(config: Fields): JsonObject | undefined {
  const ranges = Object.entries(config).filter(([, value]) => itemsOf(value).length === 2);
  const found = {
    ...scalarsOf(config, LIMIT),
    ...Object.fromEntries(ranges.filter(([name]) => LIMIT.test(name))),
  } as JsonObject;
  return Object.keys(found).length === 0 ? undefined : found;
}
