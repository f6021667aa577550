/** `attest submit --eval` and `--snapshots`, against the service. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startApp } from '../../support/app.js';
import { runHere } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { readParts, SAMPLES, sha256 } from './evaluation/reading.js';

const LOG = join(SAMPLES, 'inspect_ai/arithmetic.eval');

const app = await startApp(t);
const { key } = await newKey(app);
const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: key };
const trust = ['--verify-url', app.verifyUrl];

function scene(test: Test) {
  const dir = test.testdir({});
  const at = (name: string) => join(dir, name);
  const evaluate = (log: string, ...flags: string[]) =>
    runHere(['submit', '--eval', log, '--set', at('run.set.json'), ...flags], { env });
  return { at, evaluate };
}

t.test('a log is one submission, whose set proves the log and each sample without the others', async (t) => {
  const { at, evaluate } = scene(t);
  const ended = await evaluate(LOG, '--wait', '--bundle', at('run.bundle.json'), '--json');
  t.equal(ended.code, 0, ended.stderr);
  const { file, set, submission } = JSON.parse(ended.stdout);
  const { metadata, parts } = await readParts(LOG);
  t.strictSame(submission.metadata, metadata);
  t.match({ file, set }, { file: LOG, set: { head: { entries: parts.size } } });
  t.match(submission, { status: 'witnessed', artifact: { sha256: set.head_sha256 }, warnings: [] });
  const { entries } = JSON.parse(readFileSync(at('run.set.json'), 'utf8'));
  const inSet = entries.map(({ path, sha256 }: { path: string; sha256: string }) => `${sha256}  ${path}`);
  t.strictSame(inSet.sort(), [...parts].map(([path, bytes]) => `${sha256(bytes)}  ${path}`).sort());
  const evidence = ['--set', at('run.set.json'), '--bundle', at('run.bundle.json'), ...trust];
  t.match(await runHere(['verify', LOG, ...evidence]), {
    code: 0,
    stdout: /This artifact is arithmetic\.eval in the set/,
  });

  const path = 'samples/..%2Fesc%2Fape_epoch_2.json';
  const args = ['set', 'proof', at('run.set.json'), path, '--bundle', at('run.bundle.json')];
  t.match(await runHere([...args, '-o', at('sample.bundle.json')]), { code: 0 });
  t.match(await runHere(['eval', 'sample', LOG, path, '-o', at('sample.json')]), { code: 0 });
  const verify = () => runHere(['verify', at('sample.json'), '--bundle', at('sample.bundle.json'), ...trust]);
  t.match(await verify(), {
    code: 0,
    stdout: /This artifact is samples\/\.\.%2Fesc%2Fape_epoch_2\.json in the set/,
  });
  const proof = readFileSync(at('sample.bundle.json'), 'utf8');
  t.notMatch(proof, /one plus one|samples\/2_/, 'the proof has no other sample');
  writeFileSync(
    at('sample.json'),
    readFileSync(at('sample.json'), 'utf8').replace('"C"', '"I"').replace('2', '3'),
  );
  t.match(await verify(), { code: 1 });
});

t.test(
  'results of lm-evaluation-harness and promptfoo are submitted, with what --metadata adds',
  async (t) => {
    const { at, evaluate } = scene(t);
    writeFileSync(at('data.jsonl'), '{"q": 1}\n');
    const given = [
      '--metadata',
      '{"schema":"evaluation.v1","url":"https://ci.example/7"}',
      '--dataset',
      at('data.jsonl'),
    ];
    const logs = [
      'lm_eval/results_2026-11-26T23-09-03.190210.json',
      'promptfoo/out.json',
      'inspect_ai/failing.json',
    ];
    for (const log of logs) {
      const { code, stdout, stderr } = await evaluate(join(SAMPLES, log), '--force', '--json', ...given);
      t.equal(code, 0, stderr);
      const digest = { sha256: sha256(Buffer.from('{"q": 1}\n')) };
      t.match(JSON.parse(stdout).submission, {
        metadata: { schema: 'evaluation.v1', url: 'https://ci.example/7', dataset: { digest } },
        warnings: [],
      });
    }
  },
);

t.test('the same build submits a log once', async (t) => {
  const { evaluate } = scene(t);
  const first = await evaluate(LOG, '--build', 'b1', '--quiet');
  const again = await evaluate(LOG, '--build', 'b1', '--quiet');
  t.match([first.code, again.code], [0, 0], first.stderr + again.stderr);
  t.equal(again.stdout, first.stdout);
});

t.test('a log that cannot be read leaves no set file, and nothing is submitted', async (t) => {
  const { at, evaluate } = scene(t);
  const log = readFileSync(LOG);
  writeFileSync(at('cut.eval'), log.subarray(0, log.length - 100));
  t.match(await evaluate(at('cut.eval')), { code: 2, stdout: '', stderr: /cut\.eval is no whole zip file/ });
  const changed = Buffer.from(log);
  const sample = changed.indexOf('samples/2_epoch_1.json') + 300;
  changed[sample] = (changed[sample] ?? 0) ^ 1;
  writeFileSync(at('changed.eval'), changed);
  t.match(await evaluate(at('changed.eval')), {
    code: 2,
    stdout: '',
    stderr: /samples\/2_epoch_1\.json in .* the log is damaged/,
  });
  t.throws(() => readFileSync(at('run.set.json')), { code: 'ENOENT' });
});

t.test('each snapshot of a folder is a submission with its metadata', async (t) => {
  const { at } = scene(t);
  for (const tool of ['playwright', 'vitest', 'jest']) {
    mkdirSync(at(tool));
    cpSync(join(SAMPLES, tool), at(tool), { recursive: true });
  }
  const { code, stdout, stderr } = await runHere(
    [
      'submit',
      '--snapshots',
      at(''),
      '--report',
      at('playwright/report.json'),
      '--json',
      '--wait',
      '--bundles',
      at('bundles'),
    ],
    { env },
  );
  t.equal(code, 0, stderr);
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  t.equal(lines.length, 5 + 3 + 3);
  for (const { file, submission } of lines) {
    const { artifact, metadata, warnings, status } = submission;
    t.strictSame([artifact.sha256, warnings, status], [sha256(readFileSync(file)), [], 'witnessed']);
    t.match(metadata, { schema: 'ui_snapshot.v1', snapshot: {}, test: {} });
    if (metadata.kind === 'baseline') t.equal(metadata.baseline.digest.sha256, artifact.sha256);
  }
  t.match(
    lines.find(({ file }) => file.endsWith('home-desktop-chromium-linux.png')),
    {
      submission: { metadata: { viewport: { width: 60, height: 40 }, tool: { version: '1.65.1' } } },
    },
  );
});

t.test('flags that do not go together are usage errors', async (t) => {
  const { at } = scene(t);
  const cases: [args: string[], problem: string][] = [
    [['--eval', LOG, 'file'], '--eval is submitted alone, without other files'],
    [['--eval', LOG, '--snapshots', '.'], '--eval is submitted alone, without other files'],
    [['--eval', LOG, '--each'], '--eval does not go with --each'],
    [['--eval', LOG, '--files-from', 'x'], '--eval does not go with --files-from'],
    [['--eval', LOG, '--bundles', 'x', '--wait'], '--eval does not go with --bundles'],
    [['--snapshots', '.', '--set', 'x'], '--snapshots does not go with --set'],
    [['file', '--dataset', 'x'], '--dataset needs --eval'],
    [['--eval', LOG, '--report', 'x'], '--report needs --snapshots'],
    [['--eval', at('nowhere')], `${at('nowhere')} cannot be read: ENOENT: no such file or directory`],
    [['--eval', LOG, '--dataset', at('x')], `${at('x')} cannot be read: ENOENT: no such file or directory`],
    [
      ['--eval', LOG, '--set', at('s.json'), '--metadata', '{"schema":"purl","purl":"pkg:generic/a"}'],
      '--metadata adds to metadata of the schema evaluation.v1: it has another schema',
    ],
  ];
  for (const [args, problem] of cases) {
    const { code, stderr } = await runHere(
      ['submit', ...args, '--set', at('run.set.json')].slice(0, args[0] === '--eval' ? undefined : -2),
      { env },
    );
    t.equal(code, 2, problem);
    t.ok(stderr.includes(`error: ${problem}`), `${problem}: ${stderr}`);
  }
});
