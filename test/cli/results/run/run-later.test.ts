/** `attest run` while the service is down: the line that it prints submits the results later. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Code } from '@connectrpc/connect';
import t from 'tap';
import { readEarlierSet } from '../../../../src/cli/sets/earlier-set.js';
import { runHere, runProcess } from '../../../support/calling/run-cli.js';
import { serviceError } from '../../../support/servers/rpc-server.js';
import { serveResults } from '../serving.js';

const NAME = "it's \u009b31m \u202e é";

t.test('what could not be submitted has a line that submits it later, as the run made it', async (t) => {
  let isDown = true;
  const lost = serviceError('auth.invalid_key', Code.Unauthenticated);
  const { created, env } = await serveResults(t, () => (isDown ? lost : undefined));
  const dir = t.testdir({ 'report.xml': `<testsuite><testcase name="${NAME}"/></testsuite>` });
  const at = (path: string) => join(dir, path);
  const flags = [
    '--junit',
    at('r.xml'),
    '--attest',
    at('out'),
    '--set',
    at('run.set.json'),
    '--build',
    'ci 1',
  ];
  const sh = 'mkdir $0/out; echo a > $0/out/a; cp $0/report.xml $0/r.xml';
  const ended = await runProcess(['run', ...flags, '--', '/bin/sh', '-c', sh, dir], env);
  t.equal(ended.code, 1);
  const [, line = ''] = /^to submit it later: .* (submit [ -~]*)$/m.exec(ended.stderr) ?? [];
  const { stdout } = spawnSync('sh', ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8' });
  const args = stdout.split('\0').slice(0, -1);
  t.same(args.slice(-2), ['--resume', 'ci 1']);
  isDown = false;
  t.match(await runHere(args, { env }), { code: 0, stdout: /^sub_1 / });
  const { headSha256 } = await readEarlierSet(at('run.set.json'));
  t.match(created, [
    {
      artifact: { sha256: headSha256 },
      build: 'ci 1',
      metadata: { result: 'PASSED', passedTests: [NAME], attest_command: { program: 'sh', exitCode: 0 } },
    },
  ]);
});
