/** Rotation of the keys that sign statements: the rows, and when the trust in a replaced key ends. */
import { generateKeyPairSync } from 'node:crypto';
import t, { type Test } from 'tap';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { sequenceSubmissions } from '../../../../src/server/attestations/sequence/sequence-submissions.js';
import { dsseKeyManager } from '../../../../src/server/attestations/signing/dsse-key-manager.js';
import { endReplacedLogs, retireDsseKeys } from '../../../../src/server/attestations/signing/retirement.js';
import { type DsseKey, ensureDsseKey, findActiveKey } from '../../../../src/server/log/store/dsse-keys.js';
import { freezeLog } from '../../../../src/server/log/store/logs.js';
import { setUpWitnesses } from '../../../../src/server/witnessing/set-up-witnesses.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import {
  drain,
  makeWitness,
  openPipeline,
  type TestPipeline,
  type TestWitness,
  unwilling,
  willing,
} from '../../../support/pipeline.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function newSpki(): Buffer {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'der' });
}

/** A pipeline, what operators do with its keys, and submissions dated by the database's clock. */
async function open(t: Test, witnesses: readonly TestWitness[]) {
  const test = await openPipeline(t, witnesses);
  const manager = dsseKeyManager(test.pool);
  const publish = async () => {
    await ensureDsseKey(test.pool, Environment.LIVE, newSpki());
    return Math.max(...(await manager.list()).map(({ id }) => id));
  };
  const submit = async () => {
    const [row] = await test.pool<
      { ms: number }[]
    >`SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms`;
    const rows = test.makeRows(1, { submittedAtMs: Math.floor(row!.ms) });
    await sequenceSubmissions(test.pool, test.logId, rows, false, DAY);
  };
  const states = async () => (await manager.list()).map(({ state }) => state);
  return { ...test, manager, publish, submit, states };
}

/** Rotates to a new key, and lets it sign for as long as leaves of the old one may still be stored. */
async function rotate({ manager, publish, pool }: Awaited<ReturnType<typeof open>>): Promise<void> {
  const id = await publish();
  await manager.rotate('live', { id, afterMs: 2 * MINUTE });
  await letPass({ pool }, 8 * MINUTE);
}

async function drained(test: Pick<TestPipeline, 'pipeline' | 'pool'>): Promise<void> {
  await letPass(test, 11 * MINUTE);
  await drain(test.pipeline);
}

t.test('the newest active key signs, and before any is active the first', async (t) => {
  const key = (id: number, activeMs: number | null): DsseKey => {
    const activeFrom = activeMs === null ? null : new Date(activeMs);
    return { id, environment: 1, spki: newSpki(), validFrom: new Date(0), activeFrom, validTo: null };
  };
  const keys = [key(1, 2_000), key(2, null), key(3, 9_000), key(4, 5_000)];
  const signsAt = (atMs: number) => findActiveKey(keys, 1, atMs)?.id;
  t.strictSame([1_999, 2_000, 4_999, 5_000, 8_999, 9_000].map(signsAt), [1, 1, 1, 4, 4, 3]);
  t.equal(findActiveKey(keys, 2, 9_000), undefined, 'those of another environment do not');
  t.equal(findActiveKey([key(2, null)], 1, 9_000), undefined, 'nor does one that is only published');
});

t.test('a key is published, scheduled, taken back, scheduled again, and signs by the clock', async (t) => {
  const test = await open(t, []);
  const { manager, pool, states } = test;
  t.same(await states(), ['active']);
  await t.rejects(manager.rotate('live', { afterMs: HOUR }), { message: /^no new key of live is published/ });
  const second = await test.publish();
  t.same(await states(), ['active', 'published'], 'publishing changes nothing else');
  t.match(await manager.rotate('live', { afterMs: HOUR }), { id: second, state: 'scheduled' });
  const third = await test.publish();
  await t.rejects(manager.rotate('live', { afterMs: HOUR }), { message: /^the key 2 is to sign from 20/ });
  await t.rejects(manager.revoke(second, undefined), { message: /^the key 2 is to sign: / });
  t.match(await manager.cancel('live'), { id: second, state: 'published', activeFrom: undefined });
  await t.rejects(manager.cancel('live'), { message: 'no rotation of live is scheduled' });
  await t.rejects(manager.rotate('live', { afterMs: HOUR }), {
    message: /are published \(2, 3\): name one$/,
  });
  await t.rejects(manager.rotate('live', { id: 1, afterMs: HOUR }), {
    message: /^the key 1 is not a published/,
  });
  await t.rejects(manager.rotate('test', { id: third, afterMs: HOUR }), { message: /unused key of test/ });
  t.match(await manager.revoke(third, undefined), { state: 'ended' });
  await manager.rotate('live', { afterMs: HOUR });
  await letPass(test, HOUR - MINUTE);
  t.same(await states(), ['active', 'scheduled', 'ended']);
  await letPass(test, 2 * MINUTE);
  t.same(await states(), ['replaced', 'active', 'ended']);
  await t.rejects(manager.revoke(second, undefined), { message: /^the key 2 signs: rotate / });
  await t.rejects(manager.revoke(9, undefined), { message: 'there is no key 9; see attest dsse-keys list' });
  const actions = await pool<{ action: number; resource: string }[]>`
    SELECT action, resource_id AS resource FROM audit_entry ORDER BY id`;
  const { DSSE_KEY_ROTATED, DSSE_KEY_ROTATION_CANCELLED, DSSE_KEY_REVOKED } = AuditAction;
  t.same(
    actions.map(({ action, resource }) => [action, resource]),
    [
      [DSSE_KEY_ROTATED, '2'],
      [DSSE_KEY_ROTATION_CANCELLED, '2'],
      [DSSE_KEY_REVOKED, '3'],
      [DSSE_KEY_ROTATED, '2'],
    ],
  );
});

t.test('a replaced key is trusted until its statements are witnessed', async (t) => {
  const witness = await makeWitness(t, 'tsa');
  const test = await open(t, [witness]);
  await test.submit();
  await drained(test);
  witness.manner = unwilling;
  await test.submit();
  await drained(test);
  await rotate(test);
  await test.submit();
  for (let i = 0; i < 24; i++) {
    await letPass(test, HOUR);
    await drain(test.pipeline);
    t.same(await retireDsseKeys(test.pool), [], 'the witness is away');
  }
  const [old] = await test.manager.list();
  t.match(old, { state: 'replaced', waitsFor: [/^live\.log\.example\.com from leaf 1 \(20/] });
  witness.manner = willing;
  await letPass(test, HOUR);
  await drain(test.pipeline);
  t.same(await retireDsseKeys(test.pool), [1]);
  const [row] = await test.pool`
    SELECT valid_to BETWEEN clock_timestamp() + interval '59 minutes' AND clock_timestamp() + interval '1 hour' AS ok
    FROM dsse_key WHERE id = 1`;
  t.same(row, { ok: true }, 'and an hour more');
  t.same(await test.states(), ['ending', 'active']);
  t.same(await retireDsseKeys(test.pool), [], 'once');
});

t.test('statements after the switch do not keep the old key trusted', async (t) => {
  const witness = await makeWitness(t, 'tsa');
  const test = await open(t, [witness]);
  await test.submit();
  await drained(test);
  await rotate(test);
  witness.manner = unwilling;
  await test.submit();
  await drained(test);
  t.same(await retireDsseKeys(test.pool), [1]);
});

t.test(
  'a leaf that is not even sealed keeps the key trusted, and so does one that was in flight',
  async (t) => {
    const witness = await makeWitness(t, 'tsa');
    const test = await open(t, [witness]);
    const id = await test.publish();
    await test.manager.rotate('live', { id, afterMs: 2 * MINUTE });
    await letPass(test, 3 * MINUTE);
    t.same(await retireDsseKeys(test.pool), [], 'requests may be in flight');
    await test.submit();
    await letPass(test, 30 * MINUTE);
    t.same(await retireDsseKeys(test.pool), []);
    await drain(test.pipeline);
    t.same(await retireDsseKeys(test.pool), [1]);
  },
);

t.test('without a witness nothing proves a time, and a replaced key stays trusted', async (t) => {
  const test = await open(t, []);
  await test.submit();
  await drained(test);
  await rotate(test);
  await letPass(test, DAY);
  t.same(await retireDsseKeys(test.pool), []);
  t.match(await test.manager.list(), [{ state: 'replaced', waitsFor: [/ from leaf 0 /] }]);
  const at = new Date(Date.now() - HOUR);
  t.match(await test.manager.revoke(1, at), { state: 'ended' }, 'until the operator ends it');
});

t.test('a batch whose witness was removed settles by the newest policy', async (t) => {
  const [away, other] = [await makeWitness(t, 'away'), await makeWitness(t, 'other')];
  away.manner = unwilling;
  const test = await open(t, [away]);
  await test.submit();
  await drained(test);
  await rotate(test);
  await setUpWitnesses(test.pool, [other.setup], { quorums: [], deadlineMs: HOUR });
  await letPass(test, 2 * HOUR);
  t.same(await retireDsseKeys(test.pool), []);
  await drain(test.another({ witnesses: [other.setup] }));
  t.match(
    await test.pool`SELECT status FROM batch WHERE status = 2`,
    [],
    'it was never witnessed as it should',
  );
  t.same(await retireDsseKeys(test.pool), [1]);
});

t.test('a frozen log keeps a key trusted until another log has taken its place', async (t) => {
  const witness = await makeWitness(t, 'tsa');
  const test = await open(t, [witness]);
  await test.submit();
  await rotate(test);
  await freezeLog(test.pool, test.logId, 'a test');
  await letPass(test, DAY);
  t.same(await retireDsseKeys(test.pool), []);
  await test.pool`
    INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 2, 'live-2.log.example.com', '')`;
  t.same(await endReplacedLogs(test.pool), [], 'the new epoch is young');
  await letPass(test, HOUR);
  t.same(await endReplacedLogs(test.pool), ['live.log.example.com']);
  t.same(await retireDsseKeys(test.pool), [1]);
});
