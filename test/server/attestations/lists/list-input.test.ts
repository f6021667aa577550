/** Filters, limits and cursors of lists of submissions, as REST documents them, and what is rejected. */
import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import {
  AttestationService,
  type ListAttestationsRequestSchema,
  SubmissionStatus,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../../../gen/attestation/v1/batches_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { creation } from '../../rpc/samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const { listAttestations } = AttestationService.method;
const { listBatches } = BatchService.method;

type Query = MessageInitShape<typeof ListAttestationsRequestSchema>;

async function submit(apiKey: string): Promise<{ id: string; submittedAt: string }> {
  const { status, json } = await app.rest('/v1/attestations', { apiKey, body: creation('ab'.repeat(32)) });
  if (status !== 201) throw new Error(JSON.stringify(json));
  return { id: String(json.id), submittedAt: String(json.submitted_at) };
}

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

t.test('a cursor is valid for its own query and for no other', async (t) => {
  const owner = await newKey(app);
  for (let i = 0; i < 3; i++) await submit(owner.key);
  await app.drain();
  await submit(owner.key);
  await app.drain();
  const page = await app.rest('/v1/attestations?limit=1&schema=purl', { apiKey: owner.key });
  const next = String(page.json.next_cursor);
  const batches = await surfaces[0]!.call(listBatches, { limit: 1 }, owner.key);
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
