import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import {
  AttestationService,
  type ListAttestationsRequestSchema,
  SubmissionStatus,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../../gen/attestation/v1/batches_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../support/app.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { testResult } from '../schema/samples.js';
import { creation, METADATA } from './samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const [rest] = surfaces;
const { createAttestation, getAttestation, listAttestations } = AttestationService.method;
const { listBatches } = BatchService.method;

type Query = MessageInitShape<typeof ListAttestationsRequestSchema>;
type Listed = { id: string; submittedAt: string; status: string; metadata: JsonObject };

async function submit(
  apiKey: string,
  metadata: JsonObject = METADATA,
  sha256 = 'ab'.repeat(32),
): Promise<Listed> {
  const { code, response } = await rest!.call(createAttestation, creation(sha256, metadata), apiKey);
  if (code !== 'ok') throw new Error(`not created: ${code}`);
  return response as unknown as Listed;
}

async function page(
  query: Query,
  apiKey: string,
  at = rest!,
): Promise<{ ids: string[]; data: Listed[]; next: string }> {
  const { code, message, response } = await at.call(listAttestations, query, apiKey);
  if (code !== 'ok') throw new Error(`${code}: ${message}`);
  const { data = [], nextCursor = '' } = response as unknown as { data?: Listed[]; nextCursor?: string };
  return { ids: data.map(({ id }) => id), data, next: nextCursor };
}

/** All pages from the first. */
async function walk(query: Query, apiKey: string, between = async () => {}, at = rest!): Promise<string[]> {
  const ids: string[] = [];
  let cursor = '';
  do {
    const { ids: more, next } = await page({ ...query, cursor }, apiKey, at);
    ids.push(...more);
    cursor = next;
    await between();
  } while (cursor !== '');
  return ids;
}

t.test('a list is newest first, each item as it is got alone, without its bundle', async (t) => {
  const { key } = await newKey(app);
  const made: string[] = [];
  for (let i = 0; i < 5; i++) made.push((await submit(key)).id);
  await app.drain();
  for (const surface of surfaces) {
    const { ids, data, next } = await page({}, key, surface);
    t.same(ids, [...made].reverse(), surface.name);
    t.equal(next, '');
    const { response } = await surface.call(getAttestation, { id: made[0]! }, key);
    const { bundle, ...alone } = response;
    t.ok(bundle);
    t.same(data.at(-1), alone);
  }
  const empty = await app.rest('/v1/attestations', { apiKey: (await newKey(app)).key });
  t.same(empty.json, { data: [], next_cursor: '' });
});

type Filter = { schema: string; status: SubmissionStatus; after?: number; before?: number };

function queryOf({ schema, status, after, before }: Filter): Query {
  return {
    schema,
    status,
    ...(after === undefined ? {} : { submittedAfter: timestampFromMs(after) }),
    ...(before === undefined ? {} : { submittedBefore: timestampFromMs(before) }),
  };
}

/** Whether the filter lets through a submission of this schema, status and time. */
function passes(filter: Filter, schema: string, status: SubmissionStatus, at: number): boolean {
  const { after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY } = filter;
  if (filter.schema !== '' && filter.schema !== schema) return false;
  if (filter.status !== SubmissionStatus.UNSPECIFIED && filter.status !== status) return false;
  return at > after && at < before;
}

t.test('each filter holds alone and together with the others', async (t) => {
  const { key } = await newKey(app);
  const made: { id: string; of: [schema: string, status: SubmissionStatus, at: number] }[] = [];
  const make = async (status: SubmissionStatus) => {
    for (const metadata of [METADATA, testResult, METADATA, testResult]) {
      const { id, submittedAt } = await submit(key, metadata);
      made.push({ id, of: [String(metadata.schema), status, Date.parse(submittedAt)] });
    }
  };
  await make(SubmissionStatus.WITNESSED);
  await app.drain();
  app.witnesses[0]!.hold();
  await make(SubmissionStatus.QUEUED);
  const [early = 0, late = 0] = [made[1]?.of[2], made[6]?.of[2]];
  const times = [
    {},
    { after: early },
    { before: late },
    { after: early, before: late },
    { after: late, before: early },
  ];
  const filters = ['', 'purl', String(testResult.schema), 'none'].flatMap((schema) =>
    [0, 1, 2, 3, 4].flatMap((status) => times.map((time): Filter => ({ schema, status, ...time }))),
  );
  for (const filter of filters) {
    const wanted = made
      .filter(({ of }) => passes(filter, ...of))
      .map(({ id }) => id)
      .reverse();
    const query = queryOf(filter);
    const what = JSON.stringify(filter);
    for (const at of surfaces.slice(0, 2)) t.same((await page(query, key, at)).ids, wanted, what);
    t.same(await walk({ ...query, limit: 1 }, key), wanted, `${what}, one by one`);
  }
  app.witnesses[0]!.release();
  await app.drain();
});

t.test(
  'an artifact is found at once after its 201, with every other filter, in its own project only',
  async (t) => {
    const owner = await newKey(app);
    const [sha256, other] = ['0a'.repeat(32), '0b'.repeat(32)];
    const first = (await submit(owner.key, METADATA, sha256)).id;
    await submit(owner.key, METADATA, other);
    await app.drain();
    const test = await newKey(app, { projectId: owner.projectId, environment: Environment.TEST });
    const strangers = [test, await newKey(app)];
    for (const { key } of strangers) await submit(key, METADATA, sha256);
    const later = await submit(owner.key, testResult, sha256);
    const query = { artifactSha256: sha256.toUpperCase() };
    for (const surface of surfaces)
      t.same((await page(query, owner.key, surface)).ids, [later.id, first], surface.name);
    t.same(await walk({ ...query, limit: 1 }, owner.key), [later.id, first]);
    for (const { key } of strangers) t.equal((await page(query, key)).ids.length, 1);
    const submittedAfter = timestampFromMs(Date.parse(later.submittedAt) - 1);
    for (const [filter, wanted] of [
      [{ schema: 'purl' }, [first]],
      [{ schema: 'none' }, []],
      [{ submittedAfter }, [later.id]],
      [{ status: SubmissionStatus.WITNESSED, submittedBefore: submittedAfter }, [first]],
      [{ artifactSha256: '0c'.repeat(32) }, []],
    ] as const) {
      t.same(await walk({ ...query, ...filter }, owner.key), wanted);
    }
    const { next } = await page({ ...query, limit: 1 }, owner.key);
    for (const changed of [{}, { artifactSha256: other }]) {
      const outcome = await rest!.call(listAttestations, { ...changed, cursor: next }, owner.key);
      t.equal(outcome.code, 'cursor.invalid');
    }
    await app.rest(`/v1/attestations/${first}`, { method: 'DELETE', apiKey: owner.key });
    t.same((await page(query, owner.key)).ids, [later.id, first], 'the hash stays when metadata is redacted');
    for (const { name, call } of surfaces) {
      for (const artifactSha256 of ['0a', 'g'.repeat(64), `${sha256}00`]) {
        const outcome = await call(listAttestations, { artifactSha256 }, owner.key);
        t.match(
          outcome,
          { code: 'request.invalid', details: { errors: [{ path: '/artifact_sha256' }] } },
          name,
        );
      }
    }
  },
);

t.test('filters are read as REST documents them', async (t) => {
  const { key } = await newKey(app);
  const { id, submittedAt } = await submit(key);
  const at = Date.parse(submittedAt);
  const countOf = async (query: string) => {
    const { status, json } = await app.rest(`/v1/attestations?${query}`, { apiKey: key });
    return status === 200 ? (json.data as JsonObject[]).filter((one) => one.id === id).length : json.error;
  };
  const time = (ms: number) => new Date(ms).toISOString();
  t.equal(await countOf('schema=purl&limit=200'), 1);
  t.equal(await countOf('schema=slsa.provenance.v1'), 0);
  t.equal(await countOf(`submitted_after=${time(at - 1)}&submitted_before=${time(at + 1)}`), 1);
  t.equal(await countOf(`submitted_after=${time(at)}`), 0, 'bounds are exclusive');
  t.equal(await countOf(`submitted_before=${time(at)}`), 0);
  const [finer, before] = [time(at).replace('Z', '000001Z'), time(at - 1).replace('Z', '999999Z')];
  t.equal(await countOf(`submitted_after=${finer}`), 0, 'finer than a millisecond');
  t.equal(await countOf(`submitted_after=${before}`), 1);
  t.equal(await countOf(`submitted_before=${finer}`), 1);
  t.equal(await countOf(`submitted_before=${before}`), 0);
  t.equal(await countOf('submitted_before=9999-12-31T23:59:59.999999999Z'), 1);
  const offset = new Date(at + 7_199_999).toISOString().replace('Z', '%2B02:00');
  t.equal(await countOf(`submitted_after=${offset}`), 1, 'with an offset');
  for (const [query, path] of [
    ['schema=', '/schema'],
    ['artifact_sha256=', '/artifact_sha256'],
    [`artifact_sha256=sha256:${'a'.repeat(64)}`, '/artifact_sha256'],
    ['status=', '/status'],
    ['status=sealed', '/status'],
    ['status=QUEUED', '/status'],
    ['status=1', '/status'],
    ['submitted_after=yesterday', '/submitted_after'],
    ['submitted_before=2024-02-30T00:00:00Z', '/submitted_before'],
    ['limit=0', '/limit'],
    ['limit=201', '/limit'],
    ['limit=-1', '/limit'],
    ['limit=abc', '/limit'],
    ['limit=1.5', '/limit'],
    ['limit=', '/limit'],
    ['limit=1&limit=2', '/limit'],
    ['limits=1', '/limits'],
    ['schema=%00', '/schema'],
    ['schema=%ff', '/schema'],
    [`schema=${'x'.repeat(65)}`, '/schema'],
    [`cursor=${'x'.repeat(513)}`, '/cursor'],
  ] as const) {
    t.match(await countOf(query), { code: 'request.invalid', details: { errors: [{ path }] } }, query);
  }
  for (const { name, call } of surfaces) {
    for (const limit of [0, 201, -1]) {
      const outcome = await call(listAttestations, { limit }, key);
      t.match(outcome, { code: 'request.invalid', details: { errors: [{ path: '/limit' }] } }, name);
    }
  }
});

t.test('fifty are listed by default, two hundred at the most', async (t) => {
  const { key } = await newKey(app);
  await Promise.all(Array.from({ length: 201 }, () => submit(key)));
  t.equal((await page({}, key)).ids.length, 50);
  const most = await page({ limit: 200 }, key);
  t.equal(most.ids.length, 200);
  t.equal((await page({ limit: 200, cursor: most.next }, key)).ids.length, 1);
  t.match(most.next, /^cur_[\w-]+$/);
});

t.test('pages cover everything exactly once while new ones arrive and batches settle', async (t) => {
  const { key } = await newKey(app);
  const before: string[] = [];
  for (let i = 0; i < 20; i++) before.push((await submit(key)).id);
  const arrive = async () => {
    await submit(key);
    await app.drain();
  };
  for (const surface of surfaces) {
    const ids = await walk({ limit: 3 }, key, arrive, surface);
    t.equal(new Set(ids).size, ids.length, 'none twice');
    t.same(
      ids.filter((id) => before.includes(id)),
      [...before].reverse(),
      surface.name,
    );
  }
});

t.test('a cursor is valid for its own query and for no other', async (t) => {
  const owner = await newKey(app);
  for (let i = 0; i < 3; i++) await submit(owner.key);
  await app.drain();
  await submit(owner.key);
  await app.drain();
  const { next } = await page({ limit: 1, schema: 'purl' }, owner.key);
  const batches = await rest!.call(listBatches, { limit: 1 }, owner.key);
  const sibling = await newKey(app, { projectId: owner.projectId });
  const test = await newKey(app, { projectId: owner.projectId, environment: Environment.TEST });
  const stranger = await newKey(app);
  const flipped = Buffer.from(next.slice(4), 'base64url');
  const tampered = Array.from(flipped, (_, i) => {
    const copy = Buffer.from(flipped);
    copy[i]! ^= 1;
    return `cur_${copy.toString('base64url')}`;
  });
  const schema = 'purl';
  const wrong: [what: string, query: Query, apiKey: string][] = [
    ['another filter', { cursor: next }, owner.key],
    ['one filter more', { cursor: next, schema, status: SubmissionStatus.QUEUED }, owner.key],
    ['another schema', { cursor: next, schema: 'purl2' }, owner.key],
    ['a time', { cursor: next, schema, submittedAfter: timestampFromMs(0) }, owner.key],
    ["another project's", { cursor: next, schema }, stranger.key],
    ['another environment', { cursor: next, schema }, test.key],
    ["another list's", { cursor: String(batches.response.nextCursor), schema }, owner.key],
    ['without its prefix', { cursor: next.slice(4), schema }, owner.key],
    ['with padding', { cursor: `${next}=`, schema }, owner.key],
    ['with what is no digit', { cursor: `${next.slice(0, 9)}!${next.slice(9)}`, schema }, owner.key],
    ['cut short', { cursor: next.slice(0, -2), schema }, owner.key],
    ['nothing but a prefix', { cursor: 'cur_', schema }, owner.key],
    ['made up', { cursor: `cur_${'A'.repeat(40)}`, schema }, owner.key],
    ...tampered.map((cursor, i): [string, Query, string] => [`byte ${i}`, { cursor, schema }, owner.key]),
  ];
  t.match(batches.response.nextCursor, /^cur_/);
  for (const { name, call } of surfaces) {
    for (const [what, query, apiKey] of wrong) {
      const outcome = await call(listAttestations, query, apiKey);
      t.equal(outcome.code, 'cursor.invalid', `${what} by ${name}`);
      t.equal(name === 'REST' ? outcome.status : outcome.grpcCode, name === 'REST' ? 400 : 3);
    }
    t.equal((await call(listAttestations, { cursor: next, schema, limit: 7 }, sibling.key)).code, 'ok');
  }
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
