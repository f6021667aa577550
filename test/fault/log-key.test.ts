/** The key of a log, and the chain of a time-stamping authority, are replaced while submissions go on. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { fromHex } from '../../src/proof/bytes/encoding.js';
import { type Verification, verifyBundle } from '../../src/proof/verify/verify.js';
import { verifyReceipt } from '../../src/proof/verify/verify-receipt.js';
import { acknowledgement, newCreation, send, startLoad } from '../support/calling/load.js';
import { runHere } from '../support/calling/run-cli.js';
import { setScene } from '../support/fault-fixture.js';
import type { Acknowledged } from '../support/judging/consistent.js';
import { startSigningProcess } from '../support/servers/signing-process.js';
import { until } from '../support/until.js';
import { letWitnessesBeAsked } from '../support/wait-for-idle.js';
import { startFaultTsa } from '../support/witnesses/fault-tsa.js';

const scene = await setScene(t);
const { installation, pool, tsa, apiKey } = scene;
const signer = await startSigningProcess(t, {
  log: generateKeyPairSync('ed25519').privateKey,
  'log/receipt': generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
});
const nextTsa = await startFaultTsa(t);
const dir = t.testdir();
const acknowledged: Acknowledged[] = [];
let api = await installation.startApi();
let worker = await installation.startWorker();

type Roots = {
  transparency_logs: { origin: string; valid_to?: string }[];
  timestamp_authorities: { valid_to?: string }[];
};

const fetchJson = async (path: string) =>
  (await fetch(`${api.baseUrl}${path}`, { headers: { authorization: `Bearer ${apiKey}` } })).json();

const readRoots = async () => (await fetchJson('/v1/service/trust_roots')) as Roots;

async function submit(): Promise<Acknowledged> {
  const creation = newCreation();
  const made = acknowledgement(creation, await send(api.baseUrl, apiKey, creation));
  acknowledged.push(made);
  return made;
}

async function untilAllWitnessed(): Promise<void> {
  await until('everything is witnessed', async () => {
    await letWitnessesBeAsked(pool);
    const [left] = await pool`
      SELECT FROM log l WHERE EXISTS (SELECT FROM batch b WHERE b.log_id = l.id AND b.status <> 2)
        OR (SELECT count(*) FROM submission s WHERE s.log_id = l.id)
           > (SELECT coalesce(max(tree_size), 0) FROM batch b WHERE b.log_id = l.id)`;
    return left === undefined;
  });
}

async function verify({ id, artifactSha256 }: Acknowledged, trustRoots: Roots): Promise<Verification> {
  const bundle = await fetchJson(`/v1/attestations/${id}/bundle`);
  return verifyBundle(bundle, { trustRoots, artifactSha256, now: new Date() });
}

async function verifyAll(t: Test, made: Record<string, Acknowledged>, roots: Roots): Promise<void> {
  for (const [name, one] of Object.entries(made)) {
    const { verdict, summary } = await verify(one, roots);
    t.equal(verdict, 'verified', `${name}: ${summary}`);
  }
}

async function restart(): Promise<void> {
  for (const { stop } of [api, worker]) await stop();
  api = await installation.startApi();
  worker = await installation.startWorker();
}

const newEpoch = (...args: string[]) =>
  runHere(['log', 'new-epoch', '--environment', 'live', ...args], { env: installation.env });

t.test('a log continues with another key while its witness is unavailable', async (t) => {
  const before = await submit();
  await untilAllWitnessed();
  t.match(await newEpoch(), {
    code: 1,
    stderr: /is not frozen; a new epoch of it needs another key \(--key, /,
  });
  const oldKeys = installation.env.LOG_KEY_FILE ?? '';
  const oldFile = /^live=([^,]+)/.exec(oldKeys)![1]!;
  t.match(await newEpoch('--key', oldFile), { code: 1, stderr: /needs another key/ });
  t.match(await newEpoch('--key', oldFile.replace('log-', 'dsse-')), {
    code: 2,
    stderr: /not an Ed25519 key/,
  });
  t.match(await newEpoch('--ml-dsa-key', oldFile), {
    code: 2,
    stderr: /--ml-dsa-key .* not an ML-DSA-44 key/,
  });
  t.match(await newEpoch('--key', join(dir, 'none.pem')), {
    code: 2,
    stderr: /cannot be read: ENOENT/,
  });
  const file = join(dir, 'log-live-2.pem');
  writeFileSync(
    file,
    generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  );
  installation.env.LOG_KEY_FILE = `${oldKeys},live=${file}`;
  await restart();
  tsa.mood = 'fails';
  const underWay = await submit();

  const load = startLoad({ apis: () => [api.baseUrl], apiKey, clients: 3, most: 100_000 });
  await load.more(10);
  t.match(await newEpoch('--key', file), { code: 0, stdout: /live-2\.log\.example\.com +\d+ +0 / });
  await until('the new log is written', async () => {
    const [row] = await pool<{ n: number }[]>`
      SELECT count(*)::int AS n FROM submission WHERE log_id = (SELECT max(id) FROM log)`;
    return row!.n > 10;
  });
  await load.stop();
  t.same([...load.statuses.keys()], [201], 'no request failed');
  acknowledged.push(...load.acknowledged);
  const after = await submit();

  const open = await readRoots();
  t.match(open.transparency_logs, [
    { origin: 'live.log.example.com', valid_to: undefined },
    { origin: 'test.log.example.com' },
    { origin: 'live-2.log.example.com', valid_to: undefined },
  ]);
  await pool`UPDATE log SET created_at = created_at - interval '2 hours'`;
  tsa.mood = 'answers';
  await untilAllWitnessed();
  const ended = await until('the old log has ended', async () => {
    const roots = await readRoots();
    return roots.transparency_logs[0]?.valid_to === undefined ? undefined : roots;
  });
  t.ok(Date.parse(ended.transparency_logs[0]!.valid_to!) > Date.now(), 'after its last batch was witnessed');
  await verifyAll(t, { before, underWay, after }, ended);
  await verifyAll(t, { before, underWay }, open);
  await scene.assertConsistent(t, acknowledged);

  installation.env.LOG_KEY_FILE = `live=${file},${oldKeys.slice(oldKeys.indexOf('test='))}`;
  await restart();
  await verifyAll(t, { before, later: await submitWitnessed() }, await readRoots());
  const args = ['audit', '--verify-url', `${api.baseUrl}/verify`, '--state', join(dir, 'state.json')];
  const audited = await runHere(args);
  t.match(audited, { code: 0, stdout: /^ok {6}live\.log\.example\.com: /m }, audited.stderr);
  t.match(audited.stdout, /^ok {6}live-2\.log\.example\.com: /m);
});

t.test('a log continues with a key of a signing process that is sometimes unavailable', async (t) => {
  const readyz = async () => {
    const response = await fetch(`${worker.opsUrl}/readyz/live`);
    return { status: response.status, text: await response.text() };
  };
  const isKeyReady = async () => {
    const text = await (await fetch(`${worker.opsUrl}/metrics`)).text();
    return /^attest_log_key_ready\{log="live-3\.log\.example\.com",algorithm="ed25519"\} (\d)$/m.exec(
      text,
    )?.[1];
  };
  t.match(await newEpoch('--key', signer.setting('none')), { code: 2, stderr: /there is no key none/ });
  t.match(await newEpoch('--key', signer.setting('log')), {
    code: 0,
    stdout: /live-3\.log\.example\.com +0 /,
  });

  // No process has been restarted with it.
  const lacking = await until('the worker is not ready', async () => {
    const { status, text } = await readyz();
    return status === 503 ? text : undefined;
  });
  t.match(lacking, /LOG_KEY_FILE does not hold the key of the log live-3\.log\.example\.com/);
  t.equal(await isKeyReady(), '0');
  await until(
    'the API knows the log, whose first checkpoint waits',
    async () => (await fetch(`${api.baseUrl}/verify/log/live-3/checkpoint`)).status === 503,
  );

  const early = await submit();
  await restart();
  t.equal((await readyz()).status, 503, 'started without it, the worker serves the other logs');
  // A receipt needs two leaves.
  await submit();

  installation.env.LOG_KEY_FILE = `${installation.env.LOG_KEY_FILE},live=${signer.setting('log')}`;
  const both = [tsa.chainPem, nextTsa.chainPem];
  installation.env.WITNESSES = JSON.stringify([{ ...tsa.setting('foreign'), chain_pem: both }]);
  await restart();
  await untilAllWitnessed();
  t.match([(await readyz()).status, await isKeyReady()], [200, '1']);
  const receipt = await fetch(`${api.baseUrl}/v1/attestations/${early.id}/bundle.cose`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  const checked = await verifyReceipt(new Uint8Array(await receipt.arrayBuffer()), {
    leafHash: fromHex(early.leafSha256),
    submissionId: early.id,
    trustRoots: await readRoots(),
    now: new Date(),
  });
  t.match(checked, { check: { status: 'passed' }, origin: 'live-3.log.example.com' });

  await signer.stop();
  const waiting = await submit();
  const away = await until('the worker says that nothing is sealed', async () => {
    const { status, text } = await readyz();
    return status === 503 ? text : undefined;
  });
  t.match(away, /nothing is sealed: the signing process at \S+ cannot sign with log: connect ENOENT/);
  t.equal(await isKeyReady(), '0');
  t.match(await newEpoch('--key', signer.setting('log')), { code: 2, stderr: /connect ENOENT/ });
  const { status, headers } = await fetch(receipt.url, { headers: { authorization: `Bearer ${apiKey}` } });
  t.match([status, headers.get('retry-after')], [503, /^\d+$/]);
  await signer.start();
  await untilAllWitnessed();
  await verifyAll(t, { early, waiting }, await readRoots());
  await scene.assertConsistent(t, acknowledged);
});

async function submitWitnessed(): Promise<Acknowledged> {
  const made = await submit();
  await untilAllWitnessed();
  return made;
}

t.test('an authority continues with another chain, published before, while batches wait', async (t) => {
  const before = await submitWitnessed();
  const copy = await readRoots();
  t.match(copy.timestamp_authorities, [
    { cert_chain_pem: [String], valid_to: undefined },
    { cert_chain_pem: [String], valid_to: undefined },
  ]);
  tsa.mood = 'fails';
  const underWay = await submit();
  installation.env.WITNESSES = JSON.stringify([nextTsa.setting('foreign')]);
  await restart();
  const after = await submitWitnessed();
  const roots = await until('the trust in the first chain ends', async () => {
    const read = await readRoots();
    return read.timestamp_authorities[0]?.valid_to === undefined ? undefined : read;
  });
  t.equal(roots.timestamp_authorities.length, 2);
  await verifyAll(t, { before, underWay, after }, roots);
  await verifyAll(t, { before, underWay, after }, copy);
});
