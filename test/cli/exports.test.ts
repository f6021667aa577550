import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { submit } from '../server/rpc/submitting.js';
import { startApp } from '../support/app.js';
import { runHere } from '../support/calling/run-cli.js';
import { newKey } from '../support/calling/test-keys.js';
import { BUCKET, OWNER, startStore } from '../support/exports/s3/fixture.js';
import { assertNoLeaks } from '../support/judging/recorder.js';

const app = await startApp(t);
const store = await startStore(t);
const owner = await newKey(app);
const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: owner.key };
const dir = t.testdir({
  'secret.txt': `${OWNER.secretAccessKey}\n`,
  'token.txt': 'a-token',
  'big.txt': 'x'.repeat(20_000),
});
const file = (name: string) => join(dir, name);
app.recorder.secrets.add(OWNER.secretAccessKey);
const TO_STORE = [
  ...['s3', '--bucket', BUCKET, '--prefix', 'ci', '--endpoint', store.url],
  ...['--access-key-id', OWNER.accessKeyId, '--secret-access-key-file', file('secret.txt')],
];

async function run(args: readonly string[], typed?: string): Promise<string> {
  const options = typed === undefined ? { env } : { env, typed };
  const { code, stdout, stderr } = await runHere(['exports', ...args], options);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}

t.test('an export is created, shown, tested and deleted', async (t) => {
  const made = await run([
    'create',
    ...TO_STORE,
    '--schema',
    'purl',
    '--from',
    'beginning',
    '--compression',
    'gzip',
  ]);
  const [id = ''] = made.split(' ');
  t.match(
    made,
    new RegExp(
      `^exp_\\w{26}  active  s3 ${BUCKET}/ci\nsubmissions with schema purl, gzip, from the beginning\n` +
        'shipped through tree size \\d+; up to date\n$',
    ),
  );
  await submit(app, owner);
  await app.drain();
  const shown = await run(['get', id]);
  t.match(shown, /\nAT +STATUS +ATTEMPTS +SUBMISSIONS +BYTES +OBJECT\n/);
  t.match(shown, new RegExp(`\n20\\S+ +delivered +1 +1 +\\d+ +ci/${id}/live/\\S+\\.jsonl\\.gz\n`));
  t.match(
    await run(['list']),
    new RegExp(`^ID +STATUS +LAG +DESTINATION\n${id} +active +up to date +s3 ${BUCKET}/ci\n$`),
  );
  t.match(await run(['test', id]), new RegExp(`^${id}  active`));
  t.match(JSON.parse(await run(['get', id, '--json'])), {
    id,
    status: 'active',
    destination: { kind: 's3', bucket: BUCKET, endpoint: store.url, access_key_id: OWNER.accessKeyId },
    recent_deliveries: [{ status: 'delivered' }],
  });
  const listed = await run(['list', '--json']);
  t.match(listed, new RegExp(`"id":\\s*"${id}"`));
  for (const text of [made, shown, listed]) t.notMatch(text, OWNER.secretAccessKey);
  store.fail(() => ({ kind: 'refuse', code: 'AccessDenied' }));
  const failed = await runHere(['exports', 'test', id], { env });
  t.match(failed, { code: 1, stdout: '', stderr: /AccessDenied.*export\.invalid_destination/s });
  await submit(app, owner);
  await app.drain();
  t.match(
    await run(['get', id]),
    /behind by 1 batch, \d+ s\nevery attempt has failed since 20\S+\nlast error: .*AccessDenied.*\nnext attempt: 20/,
  );
  store.fail(() => undefined);
  t.match(await runHere(['exports', 'delete', id], { env }), { code: 2, stderr: /confirm with --yes/ });
  const declined = await runHere(['exports', 'delete', id], { env, typed: 'n\n' });
  t.match(declined, { code: 1, stderr: /Stop exp_\w+ for good.*not confirmed/s });
  t.match(await run(['delete', id], 'y\n'), new RegExp(`^${id}  stopped .*\n.*\n.*\nstopped: 20`));
  t.match(JSON.parse(await run(['delete', id, '--yes', '--json'])), { id, status: 'stopped' });
  t.match(await run(['list']), / stopped +stopped /);
  t.match(await runHere(['exports', 'get', 'exp_x'], { env }), { code: 1, stderr: /export\.not_found/ });
});

t.test('each kind has its own flags, and sends them', async (t) => {
  await writeFile(
    file('key.txt'),
    '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n',
  );
  for (const [args, stderr] of [
    [['s3', '--bucket', 'a-bucket'], /set role_arn, or access_key_id/],
    [['gcs', '--bucket', 'a-bucket', '--service-account', 'p@x.iam.gserviceaccount.com'], /must contain/],
    [
      [
        'azure_blob',
        '--account-url',
        'nonsense',
        '--container',
        'a-container',
        '--sas-token-file',
        file('token.txt'),
      ],
      /export\.invalid_destination/,
    ],
    [
      [
        'git_repo',
        '--repository',
        'https://example.com/x.git',
        '--token-file',
        file('token.txt'),
        '--ssh-key-file',
        file('key.txt'),
      ],
      /not with ssh_key/,
    ],
    [
      [
        'git_repo',
        '--repository',
        'ssh://git@example.com/x.git',
        '--ssh-key-file',
        file('key.txt'),
        '--host-key',
        'ssh-ed25519 AAAA',
        '--branch',
        'a',
      ],
      /host_key must be|ssh_key/,
    ],
  ] as const) {
    const ended = await runHere(['exports', 'create', ...args], { env });
    t.match(ended, { code: 1, stdout: '', stderr }, args.join(' '));
    t.match(ended.stderr, 'export.invalid_destination');
  }
  t.match(await run(['list']), /^ID.*\nexp_\S+ +stopped .*\n$/, 'nothing was stored');
});

t.test('wrong kinds, flags and files end with 2 and the reason', async (t) => {
  for (const [args, stderr] of [
    [['create', 'ftp'], /unknown kind ftp; the kinds are s3, gcs, azure_blob, git_repo/],
    [['create', 'unspecified'], /unknown kind/],
    [['create'], /missing required argument 'kind'/],
    [['create', 's3'], /s3 needs --bucket/],
    [['create', 'azure_blob', '--container', 'x'], /azure_blob needs --account-url/],
    [
      ['create', 'git_repo', '--bucket', 'a-bucket', '--repository', 'https://x'],
      /--bucket is not a flag of git_repo, which has --prefix, --repository, --branch/,
    ],
    [
      ['create', 's3', '--bucket', 'a-bucket', '--token-file', file('token.txt')],
      /--token-file is not a flag of s3/,
    ],
    [
      ['create', 's3', '--bucket', 'a-bucket', '--secret-access-key', 'x'],
      /unknown option '--secret-access-key'/,
    ],
    [['create', 'git_repo', '--repository', 'https://x', '--token', 'x'], /unknown option '--token'/],
    [['create', 'git_repo', '--repository', 'https://x', '--token-file', file('none.txt')], /none\.txt/],
    [['create', 'git_repo', '--repository', 'https://x', '--token-file', file('big.txt')], /big\.txt/],
    [
      ['create', 's3', '--bucket', 'a-bucket', '--from', 'yesterday'],
      /--from.*Allowed choices are now, beginning|--from/,
    ],
    [['create', 's3', '--bucket', 'a-bucket', '--compression', 'zip'], /--compression/],
    [['get'], /missing required argument 'id'/],
  ] as const) {
    t.match(await runHere(['exports', ...args], { env }), { code: 2, stdout: '', stderr }, args.join(' '));
  }
});

t.test('the help names the flags that each kind requires', async (t) => {
  const { stdout } = await runHere(['exports', 'create', '--help']);
  for (const kind of ['s3', 'gcs', 'azure_blob', 'git_repo']) {
    t.match(stdout, new RegExp(`^  ${kind} +--`, 'm'), 'its flags');
    t.match(stdout, new RegExp(`^  \\$ attest exports create ${kind} `, 'm'), 'an example');
  }
  t.notMatch(stdout, /of the destination/);
});

t.test('nothing secret was logged, or answered with an error', (t) => {
  assertNoLeaks(t, app.recorder);
  t.end();
});
