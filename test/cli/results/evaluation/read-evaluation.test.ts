/** Logs that inspect_ai, lm-evaluation-harness and promptfoo wrote. */
import { join } from 'node:path';
import t from 'tap';
import { loadSchemas, validateMetadata } from '../../../../src/server/schema/registry.js';
import { readParts, recorded, SAMPLES, sha256, writeLog } from './reading.js';

const LM_EVAL = 'lm_eval/results_2026-11-26T23-09-03.190210.json';
const registry = loadSchemas({});

const ARITHMETIC = {
  schema: 'evaluation.v1',
  status: 'success',
  tool: { name: 'inspect_ai', version: '0.3.285' },
  task: { name: 'arithmetic', version: 0, file: 'run.py' },
  model: { name: 'mockllm/model', parameters: { temperature: 0.5 } },
  dataset: { name: 'arith', samples: 3 },
  metrics: ['match', 'includes'].map((scorer) => ({
    name: 'accuracy',
    value: 0.6666666666666666,
    stderr: 0.33333333333333337,
    scorer,
  })),
  samples: { total: 6, completed: 6, errored: 0 },
  epochs: 2,
  limits: { message_limit: 10 },
  seeds: { seed: '9007199254740993' },
  versions: { inspect_ai: '0.3.285' },
  revision: { type: 'git', origin: 'https://git.example/acme/evals.git', commit: '1b192c5', dirty: false },
};

const ARITHMETIC_SAMPLES = [
  'samples/..%2Fesc%2Fape_epoch_1.json',
  'samples/..%2Fesc%2Fape_epoch_2.json',
  'samples/2_epoch_1.json',
  'samples/2_epoch_2.json',
  'samples/one plus one_epoch_1.json',
  'samples/one plus one_epoch_2.json',
];

for (const name of ['arithmetic.eval', 'arithmetic-deflate.eval']) {
  t.test(`the metadata and members of inspect_ai's ${name}`, async (t) => {
    const { metadata, parts } = await readParts(join(SAMPLES, 'inspect_ai', name));
    const { id, started_at, completed_at, ...rest } = metadata;
    t.strictSame(rest, ARITHMETIC);
    t.strictSame(
      [id, started_at, completed_at],
      ['iLzd7a5AfXByg7X3zCRhmo', '2026-11-26T23:08:46+00:00', '2026-11-26T23:08:48+00:00'],
    );
    t.strictSame(
      [...parts.keys()].sort(),
      [name, 'header.json', 'reductions.json', 'summaries.json', ...ARITHMETIC_SAMPLES].sort(),
    );
    t.equal(
      sha256(parts.get('samples/2_epoch_1.json') ?? Buffer.alloc(0)),
      '62b0bbcf14660a65fb6f8d890b82c81646b65775937c0bd26760a133f38f52f2',
      'as Python reads the member',
    );
    t.strictSame(parts.get(name), recorded(`inspect_ai/${name}`));
  });
}

t.test("the metadata and samples of inspect_ai's .json log, with the bytes that the log has", async (t) => {
  const { metadata, parts } = await readParts(join(SAMPLES, 'inspect_ai/arithmetic.json'));
  const { id, started_at, completed_at, ...rest } = metadata;
  t.strictSame(rest, ARITHMETIC);
  t.strictSame([...parts.keys()].sort(), ['arithmetic.json', ...ARITHMETIC_SAMPLES].sort());
  const text = recorded('inspect_ai/arithmetic.json').toString();
  const { samples } = JSON.parse(text);
  for (const sample of samples) {
    const name = String(sample.id).includes('/') ? encodeURIComponent(sample.id) : sample.id;
    const bytes = parts.get(`samples/${name}_epoch_${sample.epoch}.json`)?.toString() ?? '';
    t.strictSame(JSON.parse(bytes), sample);
    t.ok(text.includes(`\n    ${bytes}`), 'as the log has it, from brace to brace');
  }
});

t.test('an evaluation that failed has its status, and counts of samples with errors', async (t) => {
  const { metadata } = await readParts(join(SAMPLES, 'inspect_ai/failing.json'));
  t.match(metadata, { status: 'error', metrics: [], samples: { total: 2, completed: 1, errored: 1 } });
  t.strictSame(validateMetadata(registry, metadata), { ok: true, departures: [] });
});

t.test('the metadata and samples of lm-evaluation-harness, a line for each sample and filter', async (t) => {
  const { metadata, parts } = await readParts(join(SAMPLES, LM_EVAL));
  t.match(metadata, {
    tool: { name: 'lm-evaluation-harness', version: '0.4.13' },
    task: { name: 'arith_gen,arith_choice' },
    model: { name: 'dummy-model' },
    samples: { total: 6, completed: 6, errored: 0 },
    seeds: { random_seed: 1234, numpy_seed: 1234, torch_seed: 1234, fewshot_seed: 1234 },
    started_at: '2026-11-26T23:09:02.842Z',
  });
  t.strictSame(metadata.metrics, [
    { name: 'exact_match', value: 0, stderr: 0, task: 'arith_gen', filter: 'strict', higher_is_better: true },
    { name: 'exact_match', value: 0, stderr: 0, task: 'arith_gen', filter: 'digits', higher_is_better: true },
    {
      name: 'acc',
      value: 0.3333333333333333,
      stderr: 0.33333333333333337,
      task: 'arith_choice',
      filter: 'none',
      higher_is_better: true,
    },
  ]);
  const lines = recorded('lm_eval/samples_arith_gen_2026-11-26T23-09-03.190210.jsonl').toString().split('\n');
  t.equal(parts.get('samples/arith_gen/1_strict.json')?.toString(), lines[1]);
  t.equal(parts.get('samples/arith_gen/1_digits.json')?.toString(), lines[4]);
  t.equal(parts.size, 3 + 6 + 3, 'samples of both tasks, and the three files');
});

t.test("the metadata and results of promptfoo's output", async (t) => {
  const { metadata, parts } = await readParts(join(SAMPLES, 'promptfoo/out.json'));
  t.match(metadata, {
    id: 'eval-0IT-2026-11-26T23:09:06',
    task: { name: 'greeting' },
    model: { name: 'echo' },
    dataset: { samples: 2 },
    samples: { total: 8, completed: 8, errored: 0 },
    epochs: 2,
    versions: { promptfoo: '0.121.20' },
    started_at: '2026-11-26T23:09:06.202Z',
    completed_at: '2026-11-26T23:09:06.266Z',
  });
  t.strictSame(
    (metadata.metrics as { name: string }[]).slice(0, 5).map(({ name }) => name),
    ['score', 'testPassCount', 'testFailCount', 'testErrorCount', 'has_world'],
  );
  const { results } = JSON.parse(recorded('promptfoo/out.json').toString());
  const found = JSON.parse(parts.get('samples/test_3_prompt_1.json')?.toString() ?? '');
  t.strictSame(found, results.results[7]);
});

t.test('metadata of every recorded log is valid by its schema', async (t) => {
  for (const log of [
    'inspect_ai/arithmetic.eval',
    'inspect_ai/arithmetic.json',
    LM_EVAL,
    'promptfoo/out.json',
  ]) {
    const { metadata } = await readParts(join(SAMPLES, log));
    t.strictSame(validateMetadata(registry, metadata), { ok: true, departures: [] }, log);
  }
});

t.test('metadata keeps to the bound of the service and notes what is left out', async (t) => {
  const log = JSON.parse(recorded(LM_EVAL).toString());
  for (let i = 0; i < 2000; i++) {
    log.results[`task_${i}`] = { 'acc,none': i / 2000, 'acc_stderr,none': 'N/A' };
    log.configs[`task_${i}`] = { task: `task_${i}` };
  }
  log.results.arith_gen = { 'perplexity,none': 'REPLACED', 'big,none': 1 };
  const text = JSON.stringify(log)
    .replace('"REPLACED"', 'NaN')
    .replace('"big,none":1', '"big,none":12345678901234567890');
  const { metadata } = await readParts(writeLog(t, 'results_1.json', text));
  t.ok(JSON.stringify(metadata).length < 60_000);
  const metrics = metadata.metrics as object[];
  t.ok(metrics.length > 400, `${metrics.length} metrics are kept`);
  t.strictSame(metrics.slice(0, 2), [
    { name: 'perplexity', value: 'NaN', task: 'arith_gen', filter: 'none' },
    { name: 'big', value: '12345678901234567890', task: 'arith_gen', filter: 'none' },
  ]);
  t.strictSame((metadata.omitted as { metrics: number }).metrics, 2003 - metrics.length);
  t.strictSame(validateMetadata(registry, metadata), { ok: true, departures: [] });
});
