import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { AuditAction, AuditActorKind } from '../../../gen/attestation/admin/v1/audit_pb.js';
import {
  type AuditQuery,
  type AuditRow,
  insertAuditEntry,
  keepAuditPartitions,
  listAuditEntries,
  type NewAuditEntry,
} from '../../../src/server/admin/store/audit.js';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { errorCode } from '../../../src/server/database/database-errors.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

async function openPool(t: Test): Promise<Pool> {
  const pool = connectPool({ url: await testDatabase(t), name: 'test', max: 2, statementTimeoutMs: 30_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  return pool;
}

const entry = (n: number, more: Partial<NewAuditEntry> = {}): NewAuditEntry => ({
  id: `aud_${String(n).padStart(26, '0')}`,
  projectId: 'prj_a',
  actorKind: AuditActorKind.API_KEY,
  actorId: 'key_a',
  action: AuditAction.ATTESTATION_REDACTED,
  resourceId: 'sub_a',
  requestId: 'req_a',
  detail: {},
  ...more,
});

const ALL: AuditQuery = {
  projectId: undefined,
  action: undefined,
  resourceId: undefined,
  after: undefined,
  before: undefined,
  belowId: undefined,
  limit: 100,
};

async function listAll(pool: Pool, query: Partial<AuditQuery>): Promise<AuditRow[]> {
  return listAuditEntries(pool, { ...ALL, ...query });
}

t.test('an audit entry is committed together with its change', async (t) => {
  const pool = await openPool(t);
  const detail = { reason: 'a "reason"', n: [1, null, { x: true }] };
  await pool.begin((tx) => insertAuditEntry(tx, entry(1, { detail, projectId: null, requestId: null })));
  const failing = pool.begin(async (tx) => {
    await insertAuditEntry(tx, entry(2));
    throw new Error('the effect failed');
  });
  await t.rejects(failing, { message: 'the effect failed' });
  const [only, ...others] = await listAll(pool, {});
  t.same(others, []);
  t.match(only, { ...entry(1), detail, projectId: null, requestId: null, at: Date });
});

t.test('audit entries cannot be changed or deleted', async (t) => {
  const pool = await openPool(t);
  await insertAuditEntry(pool, entry(1));
  for (const statement of [
    `UPDATE audit_entry SET actor_id = 'key_b'`,
    'DELETE FROM audit_entry',
    'TRUNCATE audit_entry',
  ]) {
    const error = await pool.unsafe(statement).catch((thrown: unknown) => thrown);
    t.equal(errorCode(error), 'ATAPP', statement);
  }
  t.match(await listAll(pool, {}), [entry(1)]);
});

const DAY_MS = 86_400_000;

t.test('entries are kept for their retention and then dropped by month; none can be deleted', async (t) => {
  const pool = await openPool(t);
  const idsOf = async () => (await listAll(pool, {})).map(({ id }) => id);
  const at = (text: string) => new Date(`${text}T12:00:00Z`);
  const made: string[] = [];
  const add = async (text: string) => {
    const id = `aud_${ulid(at(text).getTime())}`;
    await insertAuditEntry(pool, entry(0, { id }));
    made.unshift(id);
  };
  await add('2026-11-03');
  await add('2026-11-20');
  const keep = (text: string) => keepAuditPartitions(pool, 60 * DAY_MS, at(text));
  await keep('2026-11-22');
  for (const text of ['2026-11-30', '2026-12-01', '2026-12-31', '2027-01-15', '2027-02-28']) await add(text);
  t.same(await idsOf(), made);
  const partitions = await pool<{ name: string }[]>`
    SELECT relname AS name FROM pg_class WHERE relname LIKE 'audit\\_entry%' AND relkind = 'r' ORDER BY 1`;
  const names = ['202612', '202701', '202702', 'default'].map((part) => `audit_entry_${part}`);
  t.same(
    partitions.map(({ name }) => name),
    names,
  );
  for (const name of ['audit_entry', ...names]) {
    for (const statement of [`UPDATE ${name} SET actor_id = ''`, `DELETE FROM ${name}`, `TRUNCATE ${name}`]) {
      const error = await pool.unsafe(statement).catch((thrown: unknown) => thrown);
      t.equal(errorCode(error), 'ATAPP', statement);
    }
  }
  await keep('2027-01-15');
  await add('2027-03-01');
  t.same(await idsOf(), made, 'the default partition has an entry of less than 60 days ago');
  await keep('2027-03-02');
  t.same(await idsOf(), made.slice(0, 3), 'what was there before is gone, and December');
  await keep('2027-04-15');
  t.same(await idsOf(), made.slice(0, 2), 'a month goes when its last day may');
  await keep('2027-06-15');
  t.same(await idsOf(), []);
  await add('2027-06-16');
  t.equal((await idsOf()).length, 1);
  await Promise.all([keep('2027-06-17'), keep('2027-06-17')]);
});

t.test('audit entries are listed newest first, filtered, and paged by id', async (t) => {
  const pool = await openPool(t);
  for (let n = 1; n <= 9; n++) {
    await insertAuditEntry(
      pool,
      entry(n, {
        projectId: n % 3 === 0 ? 'prj_b' : 'prj_a',
        action: n % 2 === 0 ? AuditAction.API_KEY_CREATED : AuditAction.ATTESTATION_REDACTED,
        resourceId: n > 4 ? 'sub_b' : 'sub_a',
      }),
    );
  }
  const numbers = async (query: Partial<AuditQuery>) =>
    (await listAll(pool, query)).map(({ id }) => Number(id.slice(4)));
  t.same(await numbers({}), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
  t.same(await numbers({ projectId: 'prj_b' }), [9, 6, 3]);
  t.same(await numbers({ action: AuditAction.API_KEY_CREATED }), [8, 6, 4, 2]);
  t.same(await numbers({ resourceId: 'sub_a' }), [4, 3, 2, 1]);
  t.same(await numbers({ projectId: 'prj_a', resourceId: 'sub_b', action: 2 }), [7, 5]);
  t.same(await numbers({ limit: 2 }), [9, 8]);
  t.same(await numbers({ limit: 2, belowId: entry(8).id }), [7, 6]);
  const all = await listAll(pool, {});
  const middle = all[4]?.at;
  const expected = (wanted: (at: Date) => boolean) =>
    all.filter(({ at }) => wanted(at)).map(({ id }) => Number(id.slice(4)));
  t.same(
    await numbers({ after: middle }),
    expected((at) => at > middle!),
  );
  t.same(
    await numbers({ before: middle }),
    expected((at) => at < middle!),
  );
});
