/** The programs that the documents show, in a project that has the client's package. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { stageClient } from '../../src/generate/packages/stage-client.js';
import { formatSecret, signatureHeaders } from '../../src/server/webhooks/delivery/sign.js';
import { startApp } from '../support/app.js';
import { newKey } from '../support/calling/test-keys.js';
import { isLong } from '../support/long.js';
import { findFreePort } from '../support/servers/free-port.js';
import { codeBlocks, compile } from '../support/source/pages.js';
import { until } from '../support/until.js';

const execute = promisify(execFile);
const [short = ''] = await codeBlocks('README.md', 'ts');
const [submit = '', many = '', stated = '', folder = '', receive = ''] = await codeBlocks(
  'docs/client.md',
  'ts',
);
const programs = {
  'short.ts': short,
  'submit.ts': submit,
  'stated.ts': stated,
  'many.ts': many,
  'folder.ts': folder,
  'receive.ts': receive,
};
const files = {
  'package.json': '{"type": "module"}',
  art: { 'a.png': 'a', b: { 'b.png': 'b' } },
  ...programs,
};
const dir = t.testdir(files);
stageClient({ root: process.cwd(), out: join(dir, 'node_modules/@attestation-service/client') });

t.test('the programs are correctly typed under each module resolution', async (t) => {
  const paths = Object.keys(programs).map((name) => join(dir, name));
  if (isLong) t.same(compile(paths, 'bundler'), []);
  t.same(compile(paths, 'node'), []);
});

t.test('the clients of README and docs/client.md submit, wait, and verify the bundle', async (t) => {
  const app = await startApp(t);
  const { key } = await newKey(app);
  for (const name of ['report.json', 'left-pad-1.3.0.tgz'])
    await writeFile(join(dir, name), randomBytes(1_000));
  await writeFile(join(dir, 'trust_roots.json'), (await app.rest('/verify/trust_roots.json')).body);
  const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: key };
  const introduction = await execute(process.execPath, ['short.js'], { cwd: dir, env });
  t.match(introduction.stdout, /^verified This artifact was attested under sub_/);
  const other = { ...env, ATTEST_API_KEY: (await newKey(app)).key };
  const { stdout } = await execute(process.execPath, ['submit.js'], { cwd: dir, env: other });
  t.match(stdout, /^sub_\w{26}\nverified This artifact was attested under sub_/);
  t.match((await execute(process.execPath, ['stated.js'], { cwd: dir, env })).stdout, /^sub_\w{26}\n$/);
  t.match((await execute(process.execPath, ['folder.js'], { cwd: dir, env })).stdout, /^sub_\w{26}\n$/);
  const set = JSON.parse(await readFile(join(dir, 'art.set.json'), 'utf8'));
  t.match(set, { entries: [{ path: 'a.png' }, { path: 'b/b.png' }], head: { entries: 2 } });
});

t.test('the receiver of docs/client.md accepts only events that the service signs', async (t) => {
  const [key, other] = [randomBytes(32), randomBytes(32)];
  const port = String(await findFreePort());
  const env = { PORT: port, WEBHOOK_SECRETS: `${formatSecret(randomBytes(32))},${formatSecret(key)}` };
  const receiver = spawn(process.execPath, ['receive.js'], {
    cwd: dir,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.teardown(() => receiver.kill());
  const told = textOf(receiver);
  const data = { submission_id: 'sub_1', bundle_url: 'https://attest.example.com/b' };
  const event = { id: 'evt_1', type: 'attestation.witnessed', created: '2026-01-02T03:04:05.678Z', data };
  const body = JSON.stringify(event);
  const deliver = async (by: Buffer) => {
    const headers = signatureHeaders([by], { id: event.id, timestamp: Math.floor(Date.now() / 1000), body });
    return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status;
  };
  t.equal(await until('the receiver listens', () => deliver(key)), 204);
  t.equal(await deliver(other), 400);
  await until('it tells of the event', () => told() === 'sub_1\n');
});

function textOf({ stdout }: ChildProcess): () => string {
  let text = '';
  stdout?.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  return () => text;
}
