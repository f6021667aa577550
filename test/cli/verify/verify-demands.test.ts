/** What the caller requires beyond a valid bundle: witnesses, a project, an environment. */
import { join } from 'node:path';
import t from 'tap';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { restJson } from '../../proof/rest-json.js';
import { makeService, PROJECT } from '../../proof/sample.js';
import { makeSample } from '../../proof/sample-bundles.js';
import { rootsOf, service } from '../../proof/verifying.js';
import { runHere } from '../../support/calling/run-cli.js';
import { folder } from './artifact-folder.js';

t.test('witnesses that are asked for and not verified end with exit code 1', async (t) => {
  const { args } = folder(t);
  const cases: [demands: string[], code: number, stdout: RegExp][] = [
    [['--min-witnesses', '2'], 0, /existed no later/],
    [['--min-witnesses', '3'], 1, /Not verified: 2 of at least 3 witnesses beside the log are verified\./],
    [['--require-witness', 'tsa', '--require-witness', 'w1'], 0, /existed no later/],
    [['--require-witness', 'log'], 0, /existed no later/],
    [['--require-witness', 'live.log.example'], 0, /existed no later/],
    [['--require-witness', 'tsa', '--require-witness', 'b'], 1, /the witness b, which you require, is not/],
    [['--require-witness', ''], 1, /Not verified/],
    [['--min-witnesses', '2', '--require-witness', 'b'], 1, /the witness b, which you require/],
  ];
  for (const [demands, code, stdout] of cases) {
    t.match(await runHere([...args, ...demands]), { code, stdout }, demands.join(' '));
  }
  for (const count of ['0', '-1', 'x', '1.5', '65', '']) {
    const { code, stderr } = await runHere([...args, '--min-witnesses', count]);
    t.match(
      { code, stderr },
      { code: 2, stderr: /--min-witnesses is not a whole number from 1 to 64/ },
      count,
    );
  }
});

t.test('a witness that could not be checked meets no demand', async (t) => {
  const { bundle } = await makeSample(service, ['log', 'tsa', 'calendar']);
  const { args } = folder(t, { 'bundle.json': JSON.stringify(restJson(ProofBundleSchema, bundle)) });
  t.match(await runHere(args), { code: 0 });
  t.match(await runHere([...args, '--min-witnesses', '2']), { code: 1, stdout: /1 of at least 2/ });
  t.match(await runHere([...args, '--require-witness', 'calendar']), { code: 1 });
});

t.test('the log alone says no time, and the exit code is that of the policy', async (t) => {
  const { bundle } = await makeSample(service, ['log']);
  const { args } = folder(t, {
    'bundle.json': JSON.stringify(restJson(ProofBundleSchema, bundle)),
    'roots.json': JSON.stringify(
      rootsOf(service, { policies: [{ environment: Environment.LIVE, version: 1 }] }),
    ),
  });
  t.match(await runHere(args), { code: 0, stdout: /; no witness says when\.\n$/ });
  t.match(await runHere([...args, '--min-witnesses', '1']), { code: 1, stdout: /0 of at least 1 witnesses/ });
});

t.test('--project requires an attestation of that project', async (t) => {
  const { args } = folder(t);
  t.match(await runHere(args), { code: 0, stdout: /not checked: no project was asked for/ });
  const asked = await runHere([...args, '--project', PROJECT]);
  t.match(asked, { code: 0, stdout: `by the project ${PROJECT} and` });
  t.notMatch(asked.stdout, 'no project was asked for');
  const other = await runHere([...args, '--project', 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0', '--json']);
  t.equal(other.code, 1);
  t.match(JSON.parse(other.stdout), {
    verdict: 'not_verified',
    steps: [{ status: 'passed' }, { name: 'statement', status: 'failed', code: 'project.mismatch' }],
  });
  for (const id of ['', 'first project', PROJECT.toLowerCase()]) {
    const { code, stdout, stderr } = await runHere([...args, '--project', id]);
    t.match(
      { code, stdout, stderr },
      { code: 2, stdout: '', stderr: /--project is not the id of a project/ },
    );
  }
});

t.test('a bundle of the test environment is accepted only with its flag', async (t) => {
  const service = await makeService(join(t.testdir({ test: {} }), 'test'), 'test');
  const { bundle } = await makeSample(service);
  const { args } = folder(t, {
    'bundle.json': JSON.stringify(restJson(ProofBundleSchema, bundle)),
    'roots.json': JSON.stringify(rootsOf(service)),
  });
  t.match(await runHere(args), { code: 1, stdout: /is of the test environment, not live/ });
  t.match(await runHere([...args, '--environment', 'test']), { code: 0, stdout: /\(test\)/ });
});
