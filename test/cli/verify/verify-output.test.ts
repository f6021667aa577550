/** What a verification prints, as text and as JSON. */
import t from 'tap';
import { PROJECT, SUBMISSION_ID } from '../../proof/sample.js';
import { good, STEPS } from '../../proof/verifying.js';
import { runHere, runProcess } from '../../support/calling/run-cli.js';
import { DIGEST, folder } from './artifact-folder.js';

t.test('a valid bundle ends with exit code 0, the result of each step and a summary', async (t) => {
  const { args, at } = folder(t);
  const { code, stdout, stderr } = await runProcess(args);
  t.match({ code, stderr }, { code: 0, stderr: '' });
  const lines = stdout.split('\n');
  for (const [index, name] of STEPS.entries()) {
    const line = lines.filter((text) => !text.startsWith(' '))[index];
    t.match(line, new RegExp(`^ok +${name} +\\S`), name);
  }
  t.match(
    stdout,
    '\n                           not checked: no metadata was given to compare with\n'.slice(0, 5),
  );
  t.match(stdout, 'not checked: no metadata was given to compare with');
  t.match(stdout, `Trusting the file ${at('roots.json')}\n`);
  t.match(
    lines.at(-2),
    new RegExp(`^This artifact was attested under ${SUBMISSION_ID} by the project ${PROJECT} and existed no`),
  );
});

t.test('--json prints the findings, and no claim that is not proven', async (t) => {
  const { args, at } = folder(t, { wrong: 'another artifact' });
  const { code, stdout } = await runHere([...args, '--json']);
  t.equal(code, 0);
  const found = JSON.parse(stdout);
  t.match(found, {
    verdict: 'verified',
    summary: /^This artifact was attested under /,
    trust_roots: `the file ${at('roots.json')}`,
    existed_by: '2025-06-07T12:00:02.000Z',
    statement: { submission_id: SUBMISSION_ID, environment: 'live', artifact_sha256: DIGEST.slice(7) },
  });
  t.same(
    found.steps.map(({ name }: { name: string }) => name),
    STEPS,
  );
  t.ok(found.witnesses.every((witness: object) => 'tree_size' in witness && 'name' in witness));
  const wrong = await runHere(['verify', at('wrong'), ...args.slice(2), '--json']);
  t.equal(wrong.code, 1);
  t.match(JSON.parse(wrong.stdout), { verdict: 'not_verified', existed_by: undefined, statement: undefined });
  const error = await runHere(['verify', at('gone'), ...args.slice(2), '--json']);
  t.equal(error.code, 2);
  t.match(JSON.parse(error.stderr), { error: { code: 'command.usage', message: /ENOENT/ } });
});

t.test('texts in a bundle cannot control the terminal', async (t) => {
  const hostile = { ...good, 'tsa\u001b[2J\u202eok': 1 };
  const { args } = folder(t, { 'bundle.json': JSON.stringify(hostile) });
  const { stdout } = await runHere(args);
  t.match(stdout, /tsa.\[2J.ok/);
  t.notOk(['\u001b', '\u202e'].some((text) => stdout.includes(text)));
});
