import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import {
  AttestationService,
  type ListAttestationsRequestSchema,
  SubmissionStatus,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { creation, METADATA } from '../../rpc/samples.js';
import { testResult } from '../../schema/samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const [rest] = surfaces;
const { createAttestation, getAttestation, listAttestations } = AttestationService.method;

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

t.test('a list is newest first, each item as a read returns it, without its bundle', async (t) => {
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

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
