/** Shipping: what settled is in the destination, in one object per batch, and follows what changes. */
import t, { type Test } from 'tap';
import { ExportCompression, ExportStart } from '../../../../gen/attestation/v1/exports_pb.js';
import { redactMetadata } from '../../../../src/server/attestations/submissions/metadata.js';
import type { LeasedExport } from '../../../../src/server/exports/store/export-leases.js';
import { readExportProgress } from '../../../../src/server/exports/store/export-status.js';
import type { ShipmentWork } from '../../../../src/server/exports/store/export-work.js';
import { deriveKeyRing } from '../../../../src/server/keys/key-ring.js';
import { makeProject } from '../../../../src/server/process/first-keys.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { linesOf, makeExport, objectsOf } from '../../../support/exports/exports.js';
import { startStore } from '../../../support/exports/s3/fixture.js';
import { drain, makeWitness, openPipeline, unwilling, willing } from '../../../support/pipeline.js';
import { submitFor } from '../../../support/webhooks/webhooks.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

async function setScene(t: Test, witnesses = ['w']) {
  const made = await Promise.all(witnesses.map((name, i) => makeWitness(t, name, { required: i === 0 })));
  const test = await openPipeline(t, made);
  const store = await startStore(t);
  const keys = deriveKeyRing(test.secretKeys, 'encryption');
  const projectId = await makeProject(test.pool, 'a project');
  const submit = async (count: number, owner = projectId) => {
    const ids = await submitFor(test, owner, count);
    await drain(test.pipeline);
    return ids;
  };
  const shipped = async (id: string) =>
    (await linesOf(store, id)).map(({ submission }) => submission.id).sort();
  return { test, store, keys, projectId, submit, shipped, witnesses: made };
}

t.test("each settled batch becomes one object with the project's submissions and bundles", async (t) => {
  const { test, store, keys, projectId, submit, shipped } = await setScene(t);
  const stranger = await makeProject(test.pool, 'a stranger');
  await submit(2);
  const id = await makeExport(test.pool, store, { projectId, keys });
  const { exports } = test.pipeline;
  const { renderLines } = exports;
  const shipments: [LeasedExport, ShipmentWork][] = [];
  exports.renderLines = (leased, work, count) => {
    shipments.push([leased, work]);
    return renderLines(leased, work, count);
  };
  const sent = [...(await submit(3)), ...(await submit(2))];
  await submit(2, stranger);
  t.same(await shipped(id), sent.sort(), 'what settled since, and nothing else');
  const names = [...(await objectsOf(store, id)).keys()];
  t.equal(names.length, 2);
  for (const name of names)
    t.match(name, new RegExp(`^copies/${id}/live/\\d{4}/\\d\\d/\\d\\d/btc_\\w{26}\\.jsonl$`));
  for (const { submission, bundle } of await linesOf(store, id)) {
    t.match(submission, { status: 'witnessed', environment: 'live', metadata: { schema: 'purl' } });
    t.match(bundle, { batch: {}, witnesses: [{ name: 'log' }, { name: 'w' }] });
  }
  const [progress] = await readExportProgress(test.pool, [id]);
  t.match(progress, { lagBatches: 0, lagSeconds: 0, shippedThrough: 9 });

  for (const [leased, work] of shipments) {
    const [bytes = 0] = [...(await objectsOf(store, id))]
      .filter(([name]) => name.includes(work.batchId))
      .map(([, object]) => object.length);
    t.ok(await exports.areLinesLonger(leased, work, bytes / 4), 'a length that its lines exceed');
    t.notOk(await exports.areLinesLonger(leased, work, bytes), 'that of all lines');
    const other = { ...leased, schema: 'other' };
    t.notOk(await exports.areLinesLonger(other, work, 1), 'no line');
  }
});

t.test('an export from the beginning ships earlier batches as well, gzipped when asked', async (t) => {
  const { test, store, keys, projectId, submit, shipped } = await setScene(t);
  const early = [...(await submit(2)), ...(await submit(1))];
  const id = await makeExport(test.pool, store, {
    projectId,
    keys,
    start: ExportStart.BEGINNING,
    compression: ExportCompression.GZIP,
  });
  const late = await submit(2);
  t.same(await shipped(id), [...early, ...late].sort());
  for (const name of (await objectsOf(store, id)).keys()) t.match(name, /\.jsonl\.gz$/);
});

t.test('a failed attempt is repeated later, and later again', async (t) => {
  const { test, store, keys, projectId, submit, shipped } = await setScene(t);
  const id = await makeExport(test.pool, store, { projectId, keys });
  store.fail(() => ({ kind: 'refuse', code: 'AccessDenied' }));
  const sent = await submit(1);
  const read = async () => {
    const [row] = await test.pool`
      SELECT failures, extract(epoch FROM due_at - clock_timestamp())::float8 AS "dueIn" FROM export WHERE id = ${id}`;
    return row as { failures: number; dueIn: number };
  };
  for (const [failures, seconds] of [
    [1, 10],
    [2, 20],
    [3, 40],
  ] as const) {
    await drain(test.pipeline);
    const { dueIn, ...row } = await read();
    t.same(row, { failures });
    t.ok(dueIn > seconds * 0.5 && dueIn <= seconds * 1.2, `${dueIn} s`);
    await letPass(test, seconds * 1_200);
  }
  store.fail(() => undefined);
  await drain(test.pipeline);
  t.same(await shipped(id), sent);
  t.match(await read(), { failures: 0 });
});

t.test('a redaction replaces the object', async (t) => {
  const { test, store, keys, projectId, submit } = await setScene(t);
  const id = await makeExport(test.pool, store, { projectId, keys });
  const [first = '', second = ''] = await submit(2);
  await test.pool.begin((tx) => redactMetadata(tx, first));
  await drain(test.pipeline);
  const lines = new Map((await linesOf(store, id)).map((line) => [line.submission.id, line.submission]));
  t.match(lines.get(first), { metadata_state: 'redacted', metadata: { schema: 'purl' } });
  t.notOk('metadata_salt' in (lines.get(first) ?? {}));
  t.match(lines.get(second), { metadata_state: 'valid', metadata: { purl: /pkg:/ } });
});

t.test('evidence that lands later is in the object', async (t) => {
  const { test, store, keys, projectId, submit, witnesses } = await setScene(t, ['w', 'slow']);
  const [, slow] = witnesses;
  if (slow === undefined) throw new Error('there is no second witness');
  slow.manner = unwilling;
  const id = await makeExport(test.pool, store, { projectId, keys });
  await submit(2);
  const witnessesOf = async () =>
    (await linesOf(store, id)).map(({ bundle }) =>
      (bundle.witnesses as { name: string }[])
        .map(({ name }) => name)
        .sort()
        .join(),
    );
  t.same(await witnessesOf(), ['log,w', 'log,w']);
  slow.manner = willing;
  await letPass(test, 60 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(await witnessesOf(), ['log,slow,w', 'log,slow,w']);
  t.equal((await objectsOf(store, id)).size, 1 + 1, 'the object and the manifest');
});

t.test("a day's manifest lists its objects and is complete after the day", async (t) => {
  const { test, store, keys, projectId, submit } = await setScene(t);
  const id = await makeExport(test.pool, store, { projectId, keys });
  await submit(2);
  await submit(1);
  await letPass(test, 2 * MINUTE_MS);
  await drain(test.pipeline);
  const read = async () => {
    const [, bytes] =
      [...(await objectsOf(store, id))].find(([name]) => name.endsWith('/manifest.json')) ?? [];
    const envelope = JSON.parse(String(bytes)) as { payload: string };
    return JSON.parse(Buffer.from(envelope.payload, 'base64').toString());
  };
  t.match(await read(), {
    subject: { length: 2 },
    predicate: { is_complete: false, logs: [{ from: 0, to: 3 }] },
  });
  await letPass(test, DAY_MS);
  await drain(test.pipeline);
  t.match(await read(), { predicate: { is_complete: true } });
});
