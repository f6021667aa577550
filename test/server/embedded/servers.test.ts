import { connect } from 'nats';
import postgres from 'postgres';
import t from 'tap';
import { testNatsPrefix, testNatsUrl } from '../../support/servers/shared-nats.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

t.test('a test gets a migrated database of its own', async (t) => {
  const [first, second] = await Promise.all([testDatabase(t), testDatabase(t)]);
  t.not(first, second);
  for (const url of [first, second]) {
    const sql = postgres(url);
    t.ok((await sql`SELECT name FROM migration`).length > 0);
    await sql.end();
  }
});

t.test('an empty database has no tables', async (t) => {
  const sql = postgres(await testDatabase(t, { empty: true }));
  t.same(await sql`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`, []);
  await sql.end();
});

t.test('a database is dropped with its test although a connection is open', async (t) => {
  let url = '';
  await t.test('inner', async (t) => {
    url = await testDatabase(t);
    const sql = postgres(url, { onclose: () => {} });
    await sql`SELECT 1`;
    t.teardown(() => sql.end());
  });
  await t.rejects(postgres(url, { max: 1 })`SELECT 1`, { code: '3D000' });
});

t.test('streams of a test are deleted with it', async (t) => {
  const { host, username, password } = new URL(await testNatsUrl());
  const connection = await connect({ servers: host, user: username, pass: password });
  t.teardown(() => connection.close());
  const manager = await connection.jetstreamManager();
  let prefix = '';
  await t.test('inner', async (t) => {
    prefix = testNatsPrefix(t);
    await manager.streams.add({ name: `${prefix}_JOBS`, subjects: [`${prefix}.>`] });
  });
  await t.rejects(manager.streams.info(`${prefix}_JOBS`), /stream not found/);
});
