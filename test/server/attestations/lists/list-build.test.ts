/** Lists by build: alone and with other filters, page by page, in the project and environment of the caller. */
import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import {
  AttestationService,
  type ListAttestationsRequestSchema,
  SubmissionStatus,
  ValidationMode,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { dumpTables, findTraces } from '../../../support/judging/traces.js';
import { creation, METADATA } from '../../rpc/samples.js';
import { testResult } from '../../schema/samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const [rest] = surfaces;
const { createAttestation, getAttestation, updateAttestation, deleteAttestation, listAttestations } =
  AttestationService.method;

type Query = MessageInitShape<typeof ListAttestationsRequestSchema>;
type Listed = { id: string; submittedAt: string; build?: string };
const SHA256 = 'ab'.repeat(32);

async function submit(
  apiKey: string,
  build: string | undefined,
  { metadata = METADATA, sha256 = SHA256 }: { metadata?: JsonObject; sha256?: string } = {},
): Promise<Listed> {
  const message = { ...creation(sha256, metadata), ...(build !== undefined && { build }) };
  const { code, response } = await rest!.call(createAttestation, message, apiKey);
  if (code !== 'ok') throw new Error(`not created: ${code}`);
  return response as unknown as Listed;
}

async function page(query: Query, apiKey: string, at = rest!): Promise<{ data: Listed[]; next: string }> {
  const { code, message, response } = await at.call(listAttestations, query, apiKey);
  if (code !== 'ok') throw new Error(`${code}: ${message}`);
  const { data = [], nextCursor = '' } = response as unknown as { data?: Listed[]; nextCursor?: string };
  return { data, next: nextCursor };
}

const idsOf = (listed: readonly Listed[]) => listed.map(({ id }) => id);

async function walk(query: Query, apiKey: string): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor = ''; ; ) {
    const { data, next } = await page({ ...query, cursor, limit: 1 }, apiKey);
    ids.push(...idsOf(data));
    if (next === '') return ids;
    cursor = next;
  }
}

t.test('a build is found at once after its 201, and with every other filter', async (t) => {
  const { key } = await newKey(app);
  const other = '0a'.repeat(32);
  const made = [
    await submit(key, 'ci-1'),
    await submit(key, undefined),
    await submit(key, 'ci-2'),
    await submit(key, 'ci-1', { metadata: testResult }),
    await submit(key, 'ci-1', { sha256: other }),
  ];
  const at = (...places: number[]) => places.map((place) => made[place]?.id);
  const cases: [Query, (string | undefined)[]][] = [
    [{ build: 'ci-1' }, at(4, 3, 0)],
    [{ build: 'ci-2' }, at(2)],
    [{ build: 'CI-1' }, []],
    [{ build: 'ci' }, []],
    [{ build: 'ci-1', schema: 'purl' }, at(4, 0)],
    [{ build: 'ci-1', schema: String(testResult.schema) }, at(3)],
    [{ build: 'ci-1', schema: 'none' }, []],
    [{ build: 'ci-1', artifactSha256: other }, at(4)],
    [{ build: 'ci-1', artifactSha256: SHA256 }, at(3, 0)],
    [{ build: 'ci-1', artifactSha256: SHA256, schema: 'purl' }, at(0)],
    [{ build: 'ci-2', artifactSha256: other }, []],
    [{ build: 'ci-1', submittedBefore: timestampFromMs(0) }, []],
    [{ build: 'ci-1', submittedAfter: timestampFromMs(0) }, at(4, 3, 0)],
    [{}, at(4, 3, 2, 1, 0)],
  ];
  for (const round of ['queued', 'witnessed'] as const) {
    const status = round === 'queued' ? SubmissionStatus.QUEUED : SubmissionStatus.WITNESSED;
    for (const [i, [query, wanted]] of cases.entries()) {
      const what = `${round}, case ${i}`;
      for (const surface of surfaces) t.same(idsOf((await page(query, key, surface)).data), wanted, what);
      t.same(await walk(query, key), wanted, `${what}, one by one`);
      if (round === 'witnessed')
        t.same(idsOf((await page({ ...query, status }, key)).data), wanted, `${what} by status`);
    }
    await app.drain();
  }
  t.same((await page({ build: 'ci-1', status: SubmissionStatus.FAILED }, key)).data, []);
});

t.test('each item of a list is what a read returns, with a build or without', async (t) => {
  const { key } = await newKey(app);
  for (const build of ['ci-1', undefined, 'ünï "\\ — 💣\u2028 {NULL}', 'sample build 1'])
    await submit(key, build);
  await app.drain();
  for (const { name, call } of surfaces) {
    const { response } = await call(listAttestations, {}, key);
    for (const item of response.data as unknown as Listed[]) {
      const { response: read } = await call(getAttestation, { id: item.id }, key);
      const { bundle, ...alone } = read;
      t.same(item, alone, name);
    }
  }
});

t.test('a build is that of one project in one environment', async (t) => {
  const owner = await newKey(app);
  const test = await newKey(app, { projectId: owner.projectId, environment: Environment.TEST });
  const stranger = await newKey(app);
  const sibling = await newKey(app, { projectId: owner.projectId });
  const made = new Map<string, string>();
  for (const { key } of [owner, test, stranger]) made.set(key, (await submit(key, 'shared')).id);
  const own = await submit(owner.key, 'own');
  for (const surface of surfaces) {
    for (const [key, id] of made) {
      for (const query of [{}, { schema: 'purl' }, { artifactSha256: SHA256 }])
        t.same(idsOf((await page({ ...query, build: 'shared' }, key, surface)).data), [id], surface.name);
    }
    for (const { key } of [test, stranger])
      t.same((await page({ build: 'own' }, key, surface)).data, [], surface.name);
    t.same(idsOf((await page({ build: 'own' }, sibling.key, surface)).data), [own.id]);
  }
});

t.test('the filter is read as REST documents it', async (t) => {
  const { key } = await newKey(app);
  const { id } = await submit(key, 'refs/heads/ünï #1 & 2');
  const query = encodeURIComponent('refs/heads/ünï #1 & 2');
  const { json } = await app.rest(`/v1/attestations?build=${query}`, { apiKey: key });
  t.match(json, { data: [{ id, build: 'refs/heads/ünï #1 & 2' }] });
  for (const wrong of ['', '%00', '%ff', '%20a', 'a%0A', 'x'.repeat(129), 'a&build=b']) {
    const { status, json } = await app.rest(`/v1/attestations?build=${wrong}`, { apiKey: key });
    t.match(
      [status, json],
      [400, { error: { code: 'request.invalid', details: { errors: [{ path: '/build' }] } } }],
      wrong,
    );
  }
});

t.test('a cursor is valid for its own build only, and cursors of former lists go on', async (t) => {
  const { key } = await newKey(app);
  for (let i = 0; i < 3; i++) await submit(key, 'ci-1');
  const { next } = await page({ build: 'ci-1', limit: 1 }, key);
  const { next: withoutBuild } = await page({ limit: 1 }, key);
  const { next: ofArtifact } = await page({ artifactSha256: SHA256, limit: 1 }, key);
  for (const { name, call } of surfaces) {
    for (const query of [
      { cursor: next },
      { cursor: next, build: 'ci-2' },
      { cursor: next, build: 'ci-1', schema: 'purl' },
      { cursor: next, build: 'ci-1', artifactSha256: SHA256 },
      { cursor: next, artifactSha256: SHA256 },
      { cursor: withoutBuild, build: 'ci-1' },
      { cursor: ofArtifact, build: 'ci-1' },
      { cursor: ofArtifact, build: SHA256 },
    ])
      t.equal(
        (await call(listAttestations, query, key)).code,
        'cursor.invalid',
        `${JSON.stringify(query)} by ${name}`,
      );
    t.equal((await call(listAttestations, { cursor: next, build: 'ci-1' }, key)).code, 'ok');
    t.equal((await call(listAttestations, { cursor: withoutBuild }, key)).code, 'ok');
  }
});

t.test('a correction keeps the build, a redaction erases every copy of it', async (t) => {
  const { key } = await newKey(app);
  const build = 'feature/of-a-person-7261';
  const invalid = {
    ...creation(SHA256, { schema: 'purl', note: 'x' }),
    validation: ValidationMode.LENIENT,
    build,
  };
  const { response } = await rest!.call(createAttestation, invalid, key);
  const id = String(response.id);
  await app.drain();
  const corrected = await rest!.call(updateAttestation, { id, metadata: METADATA }, key);
  t.equal(corrected.response.build, build);
  t.same(idsOf((await page({ build, schema: 'purl' }, key)).data), [id]);
  await app.pool`ANALYZE`;
  t.ok(findTraces(await dumpTables(app.pool), [Buffer.from(build)]).length > 0, 'it is found where it is');
  const redacted = await rest!.call(deleteAttestation, { id }, key);
  t.equal(redacted.response.build, undefined);
  await app.pool`ANALYZE`;
  t.same(findTraces(await dumpTables(app.pool), [Buffer.from(build)]), [], 'in no table, nor in statistics');
  for (const surface of surfaces) {
    t.same((await page({ build }, key, surface)).data, []);
    t.equal((await surface.call(getAttestation, { id }, key)).response.build ?? '', '');
    t.equal((await page({}, key, surface)).data[0]?.build ?? '', '');
  }
});
