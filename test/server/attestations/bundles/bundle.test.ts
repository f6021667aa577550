import { createHash } from 'node:crypto';
import t from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { NOTHING } from '../../rpc/samples.js';
import { submit, submitWitnessed } from '../../rpc/submitting.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const live = await newKey(app);
const { downloadBundle, getBundle } = AttestationService.method;
const FORMATS = ['bundle.json', 'bundle.sigstore.json', 'bundle.tlog-proof'];
const ALL_FORMATS = [...FORMATS, 'bundle.ots', 'bundle.cose'];

t.test('a pending bundle is not found, with Retry-After', async (t) => {
  app.witnesses[0]!.hold();
  const { id } = await submit(app, live);
  for (const { name, call } of surfaces) {
    const outcomes = [
      await call(getBundle, { id }, live.key),
      ...(await Promise.all(ALL_FORMATS.map((format) => call(downloadBundle, { id, format }, live.key)))),
    ];
    for (const outcome of outcomes) {
      t.match(outcome, { code: 'bundle.not_ready', status: name === 'REST' ? 404 : 0, details: {} }, name);
      t.match(outcome.headers, { 'retry-after': '1' });
      t.equal(outcome.grpcCode, name === 'REST' ? 0 : 5);
    }
  }
  app.witnesses[0]!.release();
  await app.drain();
  t.equal((await app.rest(`/v1/attestations/${id}/bundle`, { apiKey: live.key })).status, 200);
});

t.test('an unknown submission has no bundle of any format, and no submission one of another', async (t) => {
  const { id } = await submitWitnessed(app, live);
  for (const { name, call } of surfaces) {
    const { submissionId } = NOTHING;
    t.equal((await call(getBundle, { id: submissionId }, live.key)).code, 'submission.not_found', name);
    for (const format of ALL_FORMATS) {
      const outcome = await call(downloadBundle, { id: submissionId, format }, live.key);
      t.equal(outcome.code, 'submission.not_found', name);
      t.notOk('retry-after' in outcome.headers);
    }
    if (name === 'REST') continue;
    for (const format of ['', 'bundle', 'bundle.cbor', 'BUNDLE.JSON', 'bundle.json\0', '../bundle.json']) {
      const outcome = await call(downloadBundle, { id, format }, live.key);
      t.match(outcome, { code: 'request.invalid', details: { errors: [{ path: '/format' }] } }, name);
    }
  }
  for (const path of [
    'bundle.cbor',
    'bundle.',
    'bundles',
    'bundle/',
    'bundle.json/',
    'Bundle',
    '..%2fbundle',
  ]) {
    const answer = await app.rest(`/v1/attestations/${id}/${path}`, { apiKey: live.key });
    t.equal(answer.status, 404, path);
    t.match(answer.json, { error: { code: 'route.not_found' } });
  }
});

t.test('without evidence of OpenTimestamps there is no .ots file', async (t) => {
  const { id } = await submitWitnessed(app, live);
  for (const { name, call } of surfaces) {
    const outcome = await call(downloadBundle, { id, format: 'bundle.ots' }, live.key);
    t.match(outcome, { code: 'bundle.not_ready', status: name === 'REST' ? 404 : 0 }, name);
    if (name === 'REST') t.equal(outcome.headers['retry-after'], '3600');
  }
});

t.test('every surface hands out the same bytes, REST as files', async (t) => {
  const made = await submitWitnessed(app, live);
  const inline = await app.rest(`/v1/attestations/${made.id}/bundle`, { apiKey: live.key });
  t.equal(inline.headers['content-type'], 'application/json');
  t.equal(inline.headers['content-disposition'], undefined);
  const [rest, ...others] = surfaces;
  const typed = await rest!.call(getBundle, { id: made.id }, live.key);
  for (const { name, call } of others) {
    t.same((await call(getBundle, { id: made.id }, live.key)).response, typed.response, name);
  }
  for (const format of FORMATS) {
    const file = await app.rest(`/v1/attestations/${made.id}/${format}`, { apiKey: live.key });
    const disposition = `attachment; filename="${made.id}.${format}"`;
    t.equal(file.headers['content-disposition'], disposition);
    t.equal(
      file.headers['content-type'],
      format.endsWith('json') ? 'application/json' : 'text/plain; charset=utf-8',
    );
    for (const { name, call } of others) {
      const { response, headers } = await call(downloadBundle, { id: made.id, format }, live.key);
      t.ok(Buffer.from(String(response.data), 'base64').equals(file.body), `${format} by ${name}`);
      t.equal(response.contentType, file.headers['content-type']);
      t.equal(headers['content-disposition'], disposition);
    }
    if (format === 'bundle.json') t.ok(file.body.equals(inline.body), 'the same bytes as /bundle');
  }
});

t.test('a caller with the bundle gets 304 without it', async (t) => {
  const { id } = await submitWitnessed(app, live);
  for (const format of ['bundle', ...FORMATS]) {
    const path = `/v1/attestations/${id}/${format}`;
    const get = (headers: Record<string, string>, method = 'GET') =>
      app.rest(path, { apiKey: live.key, headers, method });
    const { headers, body } = await get({});
    const etag = String(headers.etag);
    t.equal(
      etag,
      `"${createHash('sha256').update(body).digest('base64url')}"`,
      'a strong tag over the bytes',
    );
    for (const tag of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const again = await get({ 'if-none-match': tag });
      t.equal(again.status, 304, `${format}: ${tag}`);
      t.equal(again.body.length, 0);
      t.equal(again.headers.etag, etag);
      t.ok(again.headers['x-request-id']);
    }
    t.equal((await get({ 'if-none-match': '"x"' })).status, 200);
    const head = await get({}, 'HEAD');
    t.match(head, { status: 200, headers: { etag, 'content-length': String(body.length) } });
    t.equal((await get({ 'if-none-match': etag }, 'HEAD')).status, 304);
    t.equal((await app.rest(path, { headers: { 'if-none-match': etag } })).status, 401, 'only for its owner');
  }
});

t.test('a cached bundle is still not found by another project', async (t) => {
  const { id } = await submitWitnessed(app, live);
  const stranger = await newKey(app);
  const test = await newKey(app, { projectId: live.projectId, environment: Environment.TEST });
  const sibling = await newKey(app, { projectId: live.projectId });
  for (const { name, call } of surfaces) {
    const { response } = await call(getBundle, { id }, live.key);
    t.same((await call(getBundle, { id }, sibling.key)).response, response, name);
    for (const { key } of [stranger, test]) {
      t.equal((await call(getBundle, { id }, key)).code, 'submission.not_found', name);
      for (const format of ALL_FORMATS) {
        t.equal((await call(downloadBundle, { id, format }, key)).code, 'submission.not_found', name);
      }
    }
  }
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
