/** From a submission to a Bitcoin block: the service with calendars, its API, the verifier and foreign software. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { toHex } from '../../src/proof/bytes/encoding.js';
import { parseBlockHeader, toDisplayHex } from '../../src/proof/opentimestamps/block-header.js';
import { verifyBundle } from '../../src/proof/verify/verify.js';
import { makeWitnessDue } from '../../src/server/witnessing/store/witness-leases.js';
import { submit } from '../server/rpc/submitting.js';
import { type App, startApp } from '../support/app.js';
import { runHere } from '../support/calling/run-cli.js';
import { newKey, type TestKey } from '../support/calling/test-keys.js';
import { until } from '../support/until.js';
import { type Block, type Calendar, startCalendar } from '../support/witnesses/opentimestamps/calendar.js';
import { runForeign } from '../support/witnesses/opentimestamps/foreign.js';

type Scene = { app: App; owner: TestKey; calendars: [Calendar, Calendar] };

async function startScene(t: Test): Promise<Scene> {
  const calendars: [Calendar, Calendar] = [await startCalendar(t), await startCalendar(t)];
  const urls = calendars.map(({ url }) => url);
  const witness = {
    name: 'bitcoin',
    kind: 'opentimestamps',
    calendars: urls,
    environments: ['live'],
    min: 1,
  };
  const app = await startApp(t, { env: { WITNESSES: JSON.stringify([witness]) } });
  return { app, owner: await newKey(app), calendars };
}

async function get({ app, owner }: Scene, path: string): Promise<JsonObject> {
  const { status, json } = await app.rest(path, { apiKey: owner.key });
  if (status !== 200) throw new Error(`${path}: ${JSON.stringify(json)}`);
  return json as JsonObject;
}

async function batchWitness(scene: Scene, id: string): Promise<JsonObject> {
  const { batch_id } = await get(scene, `/v1/attestations/${id}`);
  const { witnesses } = await get(scene, `/v1/batches/${batch_id}`);
  return (witnesses as JsonObject[]).find(({ name }) => name === 'bitcoin') ?? {};
}

/** Lets the worker poll every pending request. */
async function poll({ app }: Scene): Promise<void> {
  await makeWitnessDue(app.pool, 'bitcoin');
  await app.drain();
}

/** The API may have cached what a batch's bundles share, for seconds. */
function downloadOts({ app, owner }: Scene, id: string) {
  return until('the .ots file is there', async () => {
    const answer = await app.rest(`/v1/attestations/${id}/bundle.ots`, { apiKey: owner.key });
    return answer.status === 200 && answer;
  });
}

function headersOf({ height, header }: Block): Map<number, Uint8Array> {
  return new Map([[height, header]]);
}

t.test('a submission is pending, lands with a block, and is verified with its header', async (t) => {
  const scene = await startScene(t);
  const { app, owner, calendars } = scene;
  const seal = await app.holdSealing();
  const [earlier, made] = [await submit(app, owner), await submit(app, owner)];
  await seal();
  await app.drain();
  t.match(await get(scene, `/v1/attestations/${made.id}`), { status: 'witnessed' }, 'it is not waited for');
  t.match(await batchWitness(scene, made.id), {
    kind: 'opentimestamps',
    status: 'pending',
    required: false,
    detail: { status: 'pending', calendars: calendars.map(({ url }) => ({ url, status: 'pending' })) },
  });
  const before = await app.rest(`/v1/attestations/${made.id}/bundle.ots`, { apiKey: owner.key });
  t.match(before, { status: 404, json: { error: { code: 'bundle.not_ready' } } });

  await poll(scene);
  t.match(await batchWitness(scene, made.id), { status: 'pending' }, 'there is no block yet');
  const block = calendars[1].mine(850_000);
  await poll(scene);
  const { merkleRoot } = parseBlockHeader(block.header);
  t.match(await batchWitness(scene, made.id), {
    status: 'landed',
    detail: { status: 'bitcoin', bitcoin_height: 850_000, bitcoin_merkle_root: toDisplayHex(merkleRoot) },
  });

  const trustRoots = await get(scene, '/verify/trust_roots.json');
  t.match(trustRoots, {
    timestamp_calendars: calendars.map(({ url }) => url),
    opentimestamps_witnesses: [{ name: 'bitcoin' }],
  });
  await downloadOts(scene, made.id);
  const bundle = await get(scene, `/v1/attestations/${made.id}/bundle`);
  const options = { trustRoots, now: new Date(), artifactSha256: made.artifactSha256 };
  const policy = { required: ['bitcoin'] };
  const open = await verifyBundle(bundle, { ...options, policy });
  t.equal(open.verdict, 'could_not_check');
  const verified = await verifyBundle(bundle, { ...options, policy, bitcoinHeaders: headersOf(block) });
  t.equal(verified.verdict, 'verified', verified.summary);

  const files = await Promise.all([earlier, made].map(({ id }) => downloadOts(scene, id)));
  for (const [i, { id, leafSha256 }] of [earlier, made].entries()) {
    const { headers, body } = files[i]!;
    t.match(headers, {
      'content-type': 'application/vnd.opentimestamps.v1',
      'content-disposition': `attachment; filename="${id}.ots"`,
    });
    t.equal(toHex(body).slice(66, 130), leafSha256, 'its digest is that of the leaf');
    const [foreign] = await runForeign([['verify', [toHex(body), toHex(block.header)]]]);
    t.match(foreign, { times: [Number], error: undefined }, 'foreign software verifies it');
  }
});

t.test('attest verify accepts block headers, and attest bundle writes the .ots file', async (t) => {
  const scene = await startScene(t);
  const { app, owner, calendars } = scene;
  const made = await submit(app, owner);
  await app.drain();
  const block = calendars[0].mine(7);
  await poll(scene);
  const dir = t.testdir();
  const at = (name: string) => join(dir, name);
  const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: owner.key };
  for (const format of ['json', 'ots']) {
    t.equal((await runHere(['bundle', made.id, '--format', format, '-o', at(format)], { env })).code, 0);
  }
  await writeFile(at('headers'), `7 ${toHex(block.header)}\n`);
  const args = ['verify', `sha256:${made.artifactSha256}`, '--bundle', at('json')];
  const bare = await runHere(args, { env });
  t.match(bare.stdout, /bitcoin says that Bitcoin block 7 commits to the checkpoint: not checked without/);
  for (const flags of [
    ['--bitcoin-headers', at('headers')],
    ['--bitcoin-header', `7:${toHex(block.header).toUpperCase()}`],
  ]) {
    const { code, stdout } = await runHere([...args, ...flags], { env });
    t.equal(code, 0);
    t.match(stdout, /Bitcoin block 7 \([0-9a-f]{64}\) commits to the checkpoint/);
  }
  const wrong = calendars[1].mine(7);
  t.equal((await runHere([...args, '--bitcoin-header', `7:${toHex(wrong.header)}`], { env })).code, 1);
});

t.test('a worker that stops during a request or poll loses no submission', async (t) => {
  const scene = await startScene(t);
  const { app, owner, calendars } = scene;
  for (const calendar of calendars) calendar.misbehaves = 'hang';
  const made = await submit(app, owner);
  await until(
    'both calendars are asked',
    () => calendars[0].requests.length === 1 && calendars[1].requests.length === 1,
  );
  for (const calendar of calendars) calendar.misbehaves = undefined;
  await app.changeWitnesses(['self-tsa']);
  await app.drain();
  const [, accepted] = calendars;
  t.match(await batchWitness(scene, made.id), { status: 'pending' });
  t.strictSame(accepted.requests, ['POST /digest', 'POST /digest'], 'it is submitted again');

  accepted.misbehaves = 'hang';
  await makeWitnessDue(app.pool, 'bitcoin');
  await until('the calendar is polled', () => accepted.requests.length === 3);
  await app.changeWitnesses(['self-tsa']);
  accepted.misbehaves = undefined;
  accepted.mine(9);
  await poll(scene);
  t.match(await batchWitness(scene, made.id), { status: 'landed', detail: { bitcoin_height: 9 } });
});
