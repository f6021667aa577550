/** The operator sees the exports of all projects, and which of them fail. */
import t from 'tap';
import { ProjectExportService } from '../../../../gen/attestation/admin/v1/exports_pb.js';
import { startApp } from '../../../support/app.js';
import { adminOf } from '../../../support/calling/admin.js';
import { runHere } from '../../../support/calling/run-cli.js';
import { newKey, type TestKey } from '../../../support/calling/test-keys.js';
import { BUCKET, OWNER, startStore } from '../../../support/exports/s3/fixture.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';

const { listProjectExports } = ProjectExportService.method;
const app = await startApp(t);
const admin = adminOf(app);
const store = await startStore(t);
const { host } = new URL(store.url);
app.recorder.secrets.add(OWNER.secretAccessKey);

type Listed = { projectId: string; id: string } & Record<string, unknown>;
type Query = { limit?: number; cursor?: string; status?: number; onlyFailed?: boolean };

async function list(query: Query = {}): Promise<{ data: Listed[]; nextCursor: string }> {
  const { data, nextCursor } = await admin.ask(listProjectExports, query);
  return { data: (data ?? []) as Listed[], nextCursor: String(nextCursor ?? '') };
}

async function make(owner: TestKey): Promise<string> {
  const { accessKeyId: access_key_id, secretAccessKey: secret_access_key } = OWNER;
  const destination = { kind: 's3', bucket: BUCKET, endpoint: store.url, access_key_id, secret_access_key };
  const { json } = await app.rest('/v1/exports', { apiKey: owner.key, body: { destination } });
  return String(json.id);
}

const fail = (id: string, reason: string) => app.pool`
  UPDATE export SET failures = 3, failing_since = clock_timestamp(), last_error = ${reason} WHERE id = ${id}`;

const attest = (...args: string[]) =>
  runHere(['exports', ...args], { env: { ATTEST_URL: app.baseUrl, ATTEST_ADMIN_TOKEN: admin.token } });

t.test(
  'the exports of all projects are listed in pages, with where they write and how they are',
  async (t) => {
    t.same((await list()).data, []);
    t.match(await attest('list', '--all-projects'), { code: 0, stdout: 'no exports\n' });
    const owners = [await newKey(app), await newKey(app), await newKey(app)];
    const ids: string[] = [];
    for (const owner of owners) ids.unshift(await make(owner));
    const first = await list({ limit: 2 });
    const second = await list({ limit: 2, cursor: first.nextCursor });
    t.same(
      [...first.data, ...second.data].map(({ id }) => id),
      ids,
    );
    t.equal(second.nextCursor, '');
    for (const [i, one] of [...first.data].entries()) {
      t.match(one, {
        projectId: owners[2 - i]?.projectId,
        environment: 'ENVIRONMENT_LIVE',
        kind: 'DESTINATION_KIND_S3',
        place: `${host}/${BUCKET}`,
        status: 'EXPORT_STATUS_ACTIVE',
        createdAt: /Z$/,
      });
    }
    await fail(ids[1] ?? '', 'access is denied');
    const failed = await list({ onlyFailed: true });
    t.match(failed.data, [
      { id: ids[1], consecutiveFailures: 3, failingSince: /Z$/, lastError: 'access is denied' },
    ]);
    t.equal(failed.data.length, 1);
    const { code, stdout } = await attest('list', '--all-projects', '--failed');
    t.equal(code, 0);
    t.match(stdout, /^PROJECT +ID +STATUS +DESTINATION +LAG +FAILURES +SINCE +LAST ERROR\n/);
    t.match(
      stdout,
      new RegExp(
        `\n${failed.data[0]?.projectId} +${ids[1]} +active +s3 ${host}/${BUCKET} +up to date +3 +20`,
      ),
    );
    t.equal(stdout.trim().split('\n').length, 2);
    t.match(JSON.parse((await attest('list', '--all-projects', '--json')).stdout), { length: 3 });
  },
);

t.test('a stopped export is listed for its status alone', async (t) => {
  const owner = await newKey(app);
  const id = await make(owner);
  await app.rest(`/v1/exports/${id}`, { apiKey: owner.key, method: 'DELETE' });
  t.notMatch((await list()).data, [{ id }]);
  t.match((await list({ status: 3 })).data, [{ id, status: 'EXPORT_STATUS_STOPPED' }]);
});

t.test('the place of each kind names no secret and no person', async (t) => {
  const owner = await newKey(app);
  const places: [destination: object, place: string][] = [
    [{ kind: 'DESTINATION_KIND_GCS', bucket: 'a-bucket' }, 'a-bucket'],
    [
      {
        kind: 'DESTINATION_KIND_AZURE_BLOB',
        accountUrl: 'https://a.blob.core.windows.net',
        container: 'c',
      },
      'a.blob.core.windows.net/c',
    ],
    [
      { kind: 'DESTINATION_KIND_GIT_REPO', url: 'ssh://git@git.example.com:2222/team/x.git' },
      'git.example.com:2222/team/x.git',
    ],
  ];
  for (const [destination, place] of places) {
    const id = await make(owner);
    await app.pool`UPDATE export SET destination = ${app.pool.json(destination as never)} WHERE id = ${id}`;
    t.match((await list({ limit: 1 })).data, [{ id, place }]);
  }
});

t.test('keys of projects do not list them, and a foreign cursor is rejected', async (t) => {
  const owner = await newKey(app);
  for (const { name, call } of admin.surfaces) {
    const { code } = await call(listProjectExports, {}, owner.key);
    t.equal(code, 'auth.insufficient_scope', name);
    t.equal((await call(listProjectExports, { cursor: 'x' }, admin.token)).code, 'cursor.invalid', name);
  }
  t.match(await attest('list', '--failed'), { code: 2, stderr: /--failed needs --all-projects/ });
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
