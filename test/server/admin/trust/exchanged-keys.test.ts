/** What becomes of keys that were exchanged for tokens: limits, idempotency, traces, their end. */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type { JWTPayload } from 'jose';
import t, { type Test } from 'tap';
import { ApiKeyService } from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditService } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { TrustRuleService } from '../../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { UsageService } from '../../../../gen/attestation/admin/v1/usage_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { pruneExchangedKeys } from '../../../../src/server/admin/store/exchanged-keys.js';
import { makeProject } from '../../../../src/server/process/first-keys.js';
import { startApp } from '../../../support/app.js';
import { adminOf } from '../../../support/calling/admin.js';
import { githubClaims, startIssuer } from '../../../support/identities/issuer.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { until } from '../../../support/until.js';
import { creation } from '../../rpc/samples.js';

const app = await startApp(t, { apis: 2, env: { TRUSTED_PROXIES: 'none' } });
const [first = '', second = ''] = app.baseUrls;
const admin = adminOf(app);
const issuer = await startIssuer(t);
const { createTrustRule, removeTrustRule } = TrustRuleService.method;

/** A rule in a project of its own. Both API processes have another address, so it names its audience. */
async function trust(more: object = {}): Promise<{ ruleId: string; projectId: string }> {
  const projectId = await makeProject(app.pool, 'a test');
  const rule = { issuer: issuer.url, audience: 'a test', conditions: { repository: 'acme/*' } };
  const request = { projectId, environment: Environment.LIVE, ...rule, ...more };
  const { id } = await admin.ask(createTrustRule, request);
  return { ruleId: String(id), projectId };
}

type Key = { id: string; secret: string };

async function newKey(projectId: string, claims: JWTPayload = {}): Promise<Key> {
  const token = await issuer.sign(githubClaims(issuer.url, 'a test', claims));
  const { status, json } = await app.rest('/v1/tokens', { body: { token, project_id: projectId } });
  if (status !== 201) throw new Error(JSON.stringify(json));
  app.recorder.secrets.add(String(json.secret));
  return { id: String(json.id), secret: String(json.secret) };
}

async function submit(
  key: Key,
  sha256 = randomBytes(32).toString('hex'),
  headers: Record<string, string> = {},
) {
  const {
    status,
    json,
    headers: answered,
  } = await app.rest('/v1/attestations', {
    apiKey: key.secret,
    headers,
    body: creation(sha256),
  });
  return { status, id: json.id, json, isReplayed: answered['idempotent-replayed'] === 'true' };
}

async function statusAt(baseUrl: string, { secret }: Key): Promise<number> {
  const { status } = await fetch(`${baseUrl}/v1/service/me`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  return status;
}

async function auditOf(projectId: string): Promise<JsonObject[]> {
  const { data = [] } = await admin.ask(AuditService.method.listAuditEntries, { projectId });
  return data as JsonObject[];
}

t.test('keys of one rule share its windows, and those of another have their own', async (t) => {
  const { projectId } = await trust({ limits: { submissionsPerDay: 3n } });
  const other = await trust();
  const keys = [await newKey(projectId), await newKey(projectId, { sub: 'another' })];
  const [one, two] = keys as [Key, Key];
  t.same(
    [(await submit(one)).status, (await submit(two)).status, (await submit(one)).status],
    [201, 201, 201],
  );
  for (const key of [...keys, await newKey(projectId)]) t.equal((await submit(key)).status, 429);
  t.equal((await submit(await newKey(other.projectId))).status, 201);
  const { total } = await admin.ask(UsageService.method.getUsage, { projectId });
  t.match(
    JSON.stringify([total, await admin.ask(UsageService.method.getUsage, { projectId })]),
    /"submissions":"3"/,
  );
});

t.test('exchanges count in the windows of their rule', async (t) => {
  const { projectId } = await trust({ limits: { readsPerSecond: 0n } });
  const token = await issuer.sign(githubClaims(issuer.url, 'a test'));
  const { status, headers } = await app.rest('/v1/tokens', { body: { token, project_id: projectId } });
  t.equal(status, 429);
  t.match(headers['retry-after'], /^\d+$/);
});

t.test('a retry with a new key of the same identity replays; no other identity does', async (t) => {
  const { projectId } = await trust();
  const sha256 = randomBytes(32).toString('hex');
  const header = { 'idempotency-key': 'build-1' };
  const made = await submit(await newKey(projectId), sha256, header);
  const again = await submit(await newKey(projectId), sha256, header);
  t.same([again.id, again.isReplayed], [made.id, true]);
  for (const claims of [{ sub: 'repo:acme/app:pull_request' }, { repository: 'acme/b' }]) {
    const theirs = await submit(await newKey(projectId, claims), sha256, header);
    t.same([theirs.status, theirs.isReplayed], [201, false]);
    t.not(theirs.id, made.id);
  }
  const batch = async (key: Key) => {
    const items = [{ ...creation(sha256), idempotency_key: 'build-1' }, creation(sha256)];
    const { json } = await app.rest('/v1/attestations:batch', {
      apiKey: key.secret,
      headers: { 'idempotency-key': 'batch-1' },
      body: { items } as never,
    });
    return JSON.stringify(json);
  };
  const idsIn = (text: string) => [...new Set(text.match(/sub_\w{26}/g))];
  const batched = await batch(await newKey(projectId));
  t.equal(idsIn(batched)[0], made.id, 'an item as well');
  t.same(idsIn(await batch(await newKey(projectId))), idsIn(batched));
  t.notMatch(await batch(await newKey(projectId, { sub: 'another' })), new RegExp(idsIn(batched).join('|')));
  const spent = await trust({ limits: { submissionsPerDay: 1n } });
  const before = await submit(await newKey(spent.projectId), sha256, header);
  const replay = await submit(await newKey(spent.projectId), sha256, header);
  t.same([replay.id, replay.isReplayed], [before.id, true], 'also when nothing is left');
  t.equal((await submit(await newKey(spent.projectId, { sub: 'another' }), sha256, header)).status, 429);
});

t.test('who they are is in statements, in GetMe, in the audit log and in no list of API keys', async (t) => {
  const { projectId, ruleId } = await trust({ recordedClaims: ['repository', 'run_id'] });
  const key = await newKey(projectId);
  const identity = {
    issuer: issuer.url,
    subject: 'repo:acme/app:ref:refs/heads/main',
    claims: { repository: 'acme/app', run_id: '9302176411' },
  };
  const { json } = await app.rest('/v1/service/me', { apiKey: key.secret });
  t.match(json, { identity, api_key: { id: key.id, expires_at: /Z$/ }, project: { id: projectId } });
  const { id } = await submit(key);
  await app.drain();
  const shown = await app.rest(`/v1/attestations/${id}`, { apiKey: key.secret });
  t.match(shown.json, { identity, status: 'witnessed' });
  const bundle = await app.rest(`/v1/attestations/${id}/bundle`, { apiKey: key.secret });
  const payloads = bundle.body.toString().match(/"payload":"([^"]+)"/)?.[1] ?? '';
  t.match(
    Buffer.from(payloads, 'base64').toString(),
    /"subject":"repo:acme\/app:ref:refs\/heads\/main"/,
    'signed',
  );
  t.equal((await app.rest(`/v1/attestations/${id}`, { method: 'DELETE', apiKey: key.secret })).status, 200);
  const actor = { kind: 'AUDIT_ACTOR_KIND_API_KEY', id: key.id, identity };
  const entries = await auditOf(projectId);
  t.match(entries.slice(0, 2), [
    { action: 'AUDIT_ACTION_ATTESTATION_REDACTED', actor, resourceId: id },
    { action: 'AUDIT_ACTION_TOKEN_EXCHANGED', actor, resourceId: key.id, detail: { trust_rule: ruleId } },
  ]);
  t.match(entries.at(-1), { action: 'AUDIT_ACTION_TRUST_RULE_CREATED', actor: { id: 'api' } });
  const { data = [] } = await admin.ask(ApiKeyService.method.listApiKeys, { projectId });
  t.same(data, []);
  const { code } = await admin.call(ApiKeyService.method.getApiKey, { id: key.id });
  t.equal(code, 'api_key.not_found');
  const line = app.recorder.lines.find((text) => text.includes(String(id)) && text.includes('"api_key_id"'));
  t.match(line, key.id, 'the log of requests names the key');
});

t.test('a rule that is removed revokes its keys at once, everywhere', async (t) => {
  const { projectId, ruleId } = await trust();
  const key = await newKey(projectId);
  t.same([await statusAt(first, key), await statusAt(second, key)], [200, 200]);
  await admin.ask(removeTrustRule, { id: ruleId });
  t.equal(await statusAt(first, key), 401);
  await until('the other has heard of it', async () => (await statusAt(second, key)) === 401);
  const token = await issuer.sign(githubClaims(issuer.url, 'a test'));
  t.equal((await app.rest('/v1/tokens', { body: { token, project_id: projectId } })).status, 403);
  const { code } = await admin.call(removeTrustRule, { id: ruleId });
  t.equal(code, 'ok', 'removing again changes nothing');
});

t.test('an expired key stops working, and its row and that of its token go', async (t) => {
  const { projectId } = await trust();
  const key = await newKey(projectId);
  await app.pool`UPDATE exchanged_key SET expires_at = clock_timestamp() - interval '2 minutes' WHERE id = ${key.id}`;
  await app.pool`UPDATE exchanged_token SET expires_at = clock_timestamp() - interval '6 minutes' WHERE key_id = ${key.id}`;
  t.equal(await statusAt(first, key), 401);
  await pruneExchangedKeys(app.pool);
  const left = await app.pool`
    SELECT id FROM exchanged_key WHERE id = ${key.id} UNION SELECT key_id FROM exchanged_token WHERE key_id = ${key.id}`;
  t.equal(left.length, 0);
});

t.test('a key has no scope but those of its rule, and none of the operator', async (t) => {
  const { projectId } = await trust({ scopes: ['attestations:read'] });
  const key = await newKey(projectId);
  t.match(await submit(key), { status: 403, json: { error: { code: 'auth.insufficient_scope' } } });
  const wrong = await admin.call(createTrustRule, {
    projectId,
    environment: Environment.LIVE,
    issuer: issuer.url,
    conditions: { sub: 'x' },
    scopes: ['admin'],
  });
  t.equal(wrong.code, 'request.invalid');
  const [, asAdmin] = admin.surfaces;
  const outcome = await asAdmin?.call(createTrustRule, {}, key.secret);
  t.match(outcome?.code, /^auth\./);
});

t.test('an address that sends what is not trusted waits for the rest of its minute', async (t: Test) => {
  const { projectId } = await trust();
  const bad = await issuer.sign(githubClaims(issuer.url, 'elsewhere'));
  const send = async (token: string) =>
    (await app.rest('/v1/tokens', { body: { token, project_id: projectId } })).status;
  const statuses: number[] = [];
  for (let n = 0; n < 70 && !statuses.includes(429); n++) statuses.push(await send(bad));
  const { length } = statuses.filter((status) => status === 403);
  t.ok(length > 50 && length <= 60, `${length}`);
  t.equal(await send(await issuer.sign(githubClaims(issuer.url, 'a test'))), 429, 'a good one as well');
  assertNoLeaks(t, app.recorder);
});
