/** inspect_ai, Playwright and Vitest are installed, and what they write is read. In long runs only. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readSnapshots } from '../../../src/cli/results/snapshots/read-snapshots.js';
import { loadSchemas, validateMetadata } from '../../../src/server/schema/registry.js';
import { CHROMIUM } from '../../support/foreign/chromium.js';
import { readParts, sha256 } from './evaluation/reading.js';

const INSTALL_MS = 600_000;
const registry = loadSchemas({});

/** Runs a program; the test fails with what it prints if it does, unless `mayFail`. */
function run(
  cwd: string,
  program: string,
  args: readonly string[],
  { mayFail = false, env = {} } = {},
): string {
  try {
    const options = { cwd, stdio: 'pipe', timeout: INSTALL_MS, env: { ...process.env, ...env } } as const;
    return execFileSync(program, args, options).toString();
  } catch (error) {
    if (!mayFail) throw error;
    return '';
  }
}

const EVALUATION = `
import glob, hashlib, json, zipfile
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match

def answer(input, tools, tool_choice, config):
    output = ModelOutput.from_content("mockllm/model", "2")
    output.usage = ModelUsage(input_tokens=4, output_tokens=1, total_tokens=5)
    return output

samples = [Sample(id=name, input="1+1?", target=target) for name, target in [("one", "2"), ("../two", "3")]]
task = Task(dataset=MemoryDataset(samples, name="sums"), scorer=match(), name="sums", message_limit=5)
for format in ["eval", "json"]:
    model = get_model("mockllm/model", custom_outputs=answer)
    [log] = eval(task, model=model, epochs=2, log_format=format, log_dir=format, display="none", seed=7)
with zipfile.ZipFile(glob.glob("eval/*.eval")[0]) as log:
    names = [name for name in log.namelist() if not name.startswith("_journal/")]
    print(json.dumps([hashlib.sha256(log.read(name)).hexdigest() for name in names]))
`;

t.test('logs of inspect_ai, as it is today', async (t) => {
  const folder = t.testdir({ 'evaluate.py': EVALUATION });
  const venv = join(folder, 'venv');
  run(folder, 'python3', ['-m', 'venv', venv]);
  // It counts tokens by the client of a provider, although the model is a mock.
  run(folder, join(venv, 'bin/pip'), ['install', '--quiet', 'inspect-ai', 'openai']);
  const hashes: string[] = JSON.parse(run(folder, join(venv, 'bin/python'), ['evaluate.py']));
  for (const format of ['eval', 'json']) {
    const [name = ''] = readdirSync(join(folder, format));
    const { metadata, parts } = await readParts(join(folder, format, name));
    t.strictSame(validateMetadata(registry, metadata), { ok: true, departures: [] });
    t.match(metadata, {
      status: 'success',
      task: { name: 'sums' },
      model: { name: 'mockllm/model' },
      dataset: { name: 'sums', samples: 2 },
      metrics: [{ name: 'accuracy', value: 0.5, stderr: Number, scorer: 'match' }],
      samples: { total: 4, completed: 4, errored: 0 },
      epochs: 2,
      limits: { message_limit: 5 },
      seeds: { seed: 7 },
    });
    const samples = ['..%2Ftwo_epoch_1', '..%2Ftwo_epoch_2', 'one_epoch_1', 'one_epoch_2'];
    for (const sample of samples) t.ok(parts.has(`samples/${sample}.json`), sample);
    if (format === 'json') continue;
    const members = [...parts].filter(([path]) => path !== name).map(([, bytes]) => sha256(bytes));
    t.strictSame(members.sort(), hashes.sort(), 'the bytes are those that Python unpacks');
  }
});

const PLAYWRIGHT_CONFIG = `
const use = { browserName: 'chromium', viewport: { width: 60, height: 40 }, launchOptions: { executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] } };
export default { testDir: 'tests', reporter: [['json', { outputFile: 'report.json' }]], projects: [{ name: 'my desktop', use }] };
`;

const PLAYWRIGHT_TEST = `
import { test, expect } from '@playwright/test';
test('home page', async ({ page }) => {
  await page.setContent('<body style="background:' + (process.env.PAGE ?? 'green') + '">');
  await expect(page).toHaveScreenshot('home.png');
});
`;

t.test('snapshots and report of Playwright, as it is today', async (t) => {
  const folder = t.testdir({
    'package.json': '{"type": "module"}',
    'playwright.config.mjs': PLAYWRIGHT_CONFIG,
  });
  mkdirSync(join(folder, 'tests'));
  writeFileSync(join(folder, 'tests/home.spec.mjs'), PLAYWRIGHT_TEST);
  run(folder, 'npm', ['install', '--no-audit', '--no-fund', '@playwright/test'], {
    env: { PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: '1' },
  });
  const test = (page: string) =>
    run(folder, process.execPath, ['node_modules/@playwright/test/cli.js', 'test'], {
      mayFail: true,
      env: { CHROMIUM, PAGE: page },
    });
  test('green');
  test('red');
  const found = await readSnapshots(folder, join(folder, 'report.json'));
  const [actual, baseline] = found.map(({ file, metadataOf }) => {
    const digest = createHash('sha256').update(readFileSync(file)).digest('hex');
    const metadata = metadataOf(digest);
    t.strictSame(validateMetadata(registry, metadata), { ok: true, departures: [] }, file);
    return { digest, metadata };
  });
  const common = {
    project: /^my.desktop$/,
    snapshot: { name: 'home' },
    test: { title: 'home page' },
    browser: { name: 'chromium' },
    viewport: { width: 60, height: 40 },
    image: { width: 60, height: 40 },
    baseline: { digest: { sha256: baseline?.digest } },
  };
  t.match(actual?.metadata, { ...common, kind: 'actual' });
  t.match(baseline?.metadata, { ...common, kind: 'baseline' });
  t.equal(found.length, 2);
});

t.test('text snapshots of Vitest, the newest for this version of Node', async (t) => {
  const folder = t.testdir({
    'package.json': '{"type": "module"}',
    'a.test.js':
      "import { expect, it } from 'vitest';\nit('has `text`', () => expect({ a: 1 }).toMatchSnapshot());\n",
  });
  run(folder, 'npm', ['install', '--no-audit', '--no-fund', 'vitest@3']);
  // In CI Vitest writes new snapshots only if it is asked to.
  run(folder, process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--update', '--root', folder]);
  const [snapshot] = await readSnapshots(folder, undefined);
  t.match(snapshot?.metadataOf('ab'.repeat(32)), {
    tool: { name: 'vitest' },
    test: { file: /a\.test\.js$/ },
    snapshot: { names: ['has `text` 1'], count: 1 },
  });
});
