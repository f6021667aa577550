/** Ctrl-C while `attest submit` makes the set of a folder. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { AttestationService, SubmissionStatus } from '../../../gen/attestation/v1/attestations_pb.js';
import { PROGRAM } from '../../support/calling/run-cli.js';
import { serveRpc } from '../../support/servers/rpc-server.js';
import { until } from '../../support/until.js';
import { KEYS } from '../submit/submitting.js';

const GIB = 1024 ** 3;

/** A service whose submissions are never witnessed. */
async function serve(t: Test) {
  const { baseUrl, requests } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      createAttestation: () => ({ id: 'sub_1', status: SubmissionStatus.QUEUED }),
      getAttestation: ({ id }) => ({ id, status: SubmissionStatus.QUEUED }),
    });
  });
  return { requests, env: { ATTEST_URL: baseUrl, ATTEST_API_KEY: KEYS.test, TMPDIR: '/nowhere' } };
}

function submit(t: Test, dir: string, args: readonly string[], env: Record<string, string>) {
  const child = spawn(process.execPath, [...PROGRAM, 'submit', 'art', ...args], {
    cwd: dir,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]).then(
    ([stdout, stderr, [code]]) => ({ stdout, stderr, code }),
  );
  return { child, ended };
}

t.test('while files are hashed it ends within seconds, without a set file', async (t) => {
  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const dir = t.testdir();
    mkdirSync(join(dir, 'art'));
    writeFileSync(join(dir, 'art/a'), 'a');
    writeFileSync(join(dir, 'art/large'), '');
    // Sparse; hashing it takes minutes.
    truncateSync(join(dir, 'art/large'), 200 * GIB);
    const { requests, env } = await serve(t);
    const { child, ended } = submit(t, dir, [], env);
    await until('the set is begun', () => readdirSync(dir).length > 1);
    child.kill(signal);
    const { code, stdout, stderr } = await ended;
    t.match({ code, stdout }, { code: exitCode, stdout: '' });
    t.match(
      stderr,
      /^stopping; repeat to exit at once\ninterrupted: nothing was submitted\nto continue: .*\n$/,
    );
    t.same(readdirSync(dir), ['art']);
    t.equal(requests.length, 0);
  }
});

t.test('while it waits for witnesses the submission is printed, and the set stays', async (t) => {
  const dir = t.testdir({ art: { a: 'a' } });
  const { requests, env } = await serve(t);
  const { child, ended } = submit(t, dir, ['--wait', '--bundle', 'b.json'], env);
  await until('it waits', () => requests.length > 2);
  child.kill('SIGINT');
  const { code, stdout } = await ended;
  t.match({ code, stdout }, { code: 130, stdout: 'sub_1  queued  art\n' });
  t.same(readdirSync(dir).sort(), ['art', 'art.set.json']);
  t.match(JSON.parse(readFileSync(join(dir, 'art.set.json'), 'utf8')), { head: { entries: 1 } });
});
