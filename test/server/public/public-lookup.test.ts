import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AuditService } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { ProjectService, PublicLookup } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { createPublicBundleReader } from '../../../src/server/public/public-lookup.js';
import { startApp } from '../../support/app.js';
import { adminOf } from '../../support/calling/admin.js';
import { newKey, type TestKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { creation } from '../rpc/samples.js';

const app = await startApp(t, { env: { PUBLIC_LOOKUP: 'true' } });
const ARTIFACT = '0a'.repeat(32);

type Match = { id: string; project: string; environment: string; submitted_at: string; bundle_url: string };

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  app.rest(`/verify/${path}`, { headers, method });

async function lookUp(sha256: string): Promise<Match[]> {
  const { status, json } = await get(`lookup?artifact_sha256=${sha256}`);
  t.match({ status, json }, { status: 200, json: { artifact_sha256: sha256, is_complete: true } });
  return json.submissions as unknown as Match[];
}

async function submit({ key }: TestKey, sha256: string): Promise<string> {
  const { json } = await app.rest('/v1/attestations', { apiKey: key, body: creation(sha256) });
  return String(json.id);
}

const { ask } = adminOf(app);

async function change({ projectId: id }: TestKey, publicLookup: PublicLookup): Promise<void> {
  await ask(ProjectService.method.updateProject, { id, publicLookup });
}

t.test('without a project that is looked up in public there is no look-up', async (t) => {
  t.match(await get(`lookup?artifact_sha256=${'0d'.repeat(32)}`), { status: 404 });
});

t.test('settled submissions are listed by the hash of a file, with their bundles', async (t) => {
  const live = await newKey(app);
  const test = await newKey(app, { projectId: live.projectId, environment: Environment.TEST });
  const closed = await newKey(app);
  await change(closed, PublicLookup.OFF);
  const [hidden, first] = [await submit(closed, ARTIFACT), await submit(live, ARTIFACT)];
  t.same(await lookUp('0b'.repeat(32)), []);
  await app.drain();
  const second = await submit(test, ARTIFACT);
  await app.drain();
  await submit(live, ARTIFACT);
  const matches = await lookUp(ARTIFACT);
  t.match(matches, [
    { id: second, project: live.projectId, environment: 'test' },
    { id: first, project: live.projectId, environment: 'live' },
  ]);
  for (const { id, bundle_url: url, environment } of matches) {
    t.equal(url, `${app.verifyUrl}/bundle/${id}`);
    const { key } = environment === 'live' ? live : test;
    const own = await app.rest(`/v1/attestations/${id}/bundle`, { apiKey: key });
    const open = await get(`bundle/${id}`);
    t.equal(open.body.toString(), own.body.toString());
    t.match(open.headers, { 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=5' });
    t.equal((await get(`bundle/${id}`, { 'if-none-match': String(open.headers.etag) })).status, 304);
  }
  const unknown = await get('bundle/sub_01JX5WQ3ZZZZZZZZZZZZZZZZZZ');
  for (const id of [hidden, 'sub_1', '..%2ftrust_roots.json', '%00']) {
    const { status, body } = await get(`bundle/${id}`);
    t.same([status, body.toString()], [unknown.status, unknown.body.toString()], id);
  }
  await change(live, PublicLookup.OFF);
  t.equal((await get(`bundle/${first}`)).status, 404, 'at once');
  await change(live, PublicLookup.DEFAULT);
  t.equal((await get(`bundle/${first}`)).status, 200);
  const { data } = await ask(AuditService.method.listAuditEntries, { projectId: live.projectId, limit: 2 });
  t.match(data, [
    { action: 'AUDIT_ACTION_PROJECT_CHANGED', detail: { public_lookup: { from: 'off', to: 'default' } } },
    { detail: { public_lookup: { from: 'default', to: 'off' } } },
  ]);
});

t.test('of a hidden submission no more is read than of one that does not exist', async (t) => {
  const closed = await newKey(app);
  const open = await newKey(app);
  await change(closed, PublicLookup.OFF);
  const [hidden, shown] = [await submit(closed, ARTIFACT), await submit(open, ARTIFACT)];
  await app.drain();
  const asked: string[] = [];
  const read = createPublicBundleReader({
    pool: app.pool,
    isDefault: true,
    findBundle: async (id) => void asked.push(id),
  });
  for (const id of [hidden, 'sub_01JX5WQ3ZZZZZZZZZZZZZZZZZZ', shown]) await read(id, undefined);
  t.same(asked, [shown]);
});

t.test('the newest twenty are shown', async (t) => {
  const key = await newKey(app);
  const sha256 = '0c'.repeat(32);
  const made: string[] = [];
  for (let i = 0; i < 22; i++) made.unshift(await submit(key, sha256));
  await app.drain();
  const matches = await lookUp(sha256);
  t.same(
    matches.map(({ id }) => id),
    made.slice(0, 20),
  );
});

t.test('any query but one digest is rejected', async (t) => {
  for (const [query, path] of [
    ['', '/artifact_sha256'],
    ['artifact_sha256=', '/artifact_sha256'],
    ['artifact_sha256=0a', '/artifact_sha256'],
    [`artifact_sha256=${ARTIFACT}&artifact_sha256=${ARTIFACT}`, '/artifact_sha256'],
    [`artifact_sha256=${'g'.repeat(64)}`, '/artifact_sha256'],
    [`artifact_sha256=${ARTIFACT}%00`, '/artifact_sha256'],
    [`artifact_sha256=${ARTIFACT}&limit=200`, '/limit'],
    ['__proto__=1', '/__proto__'],
  ] as const) {
    const { status, json } = await get(`lookup?${query}`);
    const { code, details } = json.error as JsonObject;
    t.match(
      { status, code, details },
      { status: 400, code: 'request.invalid', details: { errors: [{ path }] } },
      query,
    );
  }
  t.match(await get(`lookup?artifact_sha256=${ARTIFACT}`, {}, 'POST'), { status: 405 });
});

t.test('nothing of this is logged that should not be', async (t) => {
  assertNoLeaks(t, app.recorder);
});
