/** What fails without the destination's fault, or by its malice: how it is counted, logged and repeated. */
import t from 'tap';
import { createSpoolBudget } from '../../../../src/server/exports/ship/spool-budget.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { exportsLog } from '../../../support/exports/exports.js';
import { assertExported, setExportScene } from '../../../support/exports/scene.js';
import { drain } from '../../../support/pipeline.js';

const HOUR_MS = 3_600_000;

t.test('a store that always has another revision is failing, not busy', async (t) => {
  const scene = await setExportScene(t);
  const { test, store } = scene;
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  let revision = 1;
  store.fail(({ operation, key }) => {
    if (!key.endsWith('.jsonl')) return undefined;
    if (operation === 'PutObject') return { kind: 'refuse', code: 'PreconditionFailed' };
    if (operation !== 'HeadObject') return undefined;
    return {
      kind: 'answer',
      with: (response) => {
        revision++;
        const metadata = { 'x-amz-meta-revision': String(revision), 'x-amz-meta-sha256': '00'.repeat(32) };
        response.writeHead(200, { etag: `"${revision}"`, 'content-length': '1', ...metadata }).end();
      },
    };
  });
  await scene.submit(projectId, 1);
  const [row] = await test.pool<{ failures: number; error: string }[]>`
    SELECT failures, last_error AS error FROM export WHERE id = ${made.id}`;
  t.equal(row?.failures, 1);
  t.match(row?.error, /another writer keeps replacing the object/);
  const puts = store.requests.filter(({ operation }) => operation === 'HeadObject').length;
  t.ok(puts < 10, `${puts} requests`);
});

t.test('a failure of our own is not counted, and is soon repeated', async (t) => {
  const scene = await setExportScene(t);
  const { test, store } = scene;
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  const { exports } = test.pipeline;
  const folder = exports.temporaryDirectory;
  const { renderLines } = exports;
  exports.renderLines = () => {
    throw new Error('ENOSPC: no space left on device');
  };
  await scene.submit(projectId, 1);
  const read = async () => {
    const [row] = await test.pool<{ failures: number; error: string | null; waitMs: number }[]>`
      SELECT failures, last_error AS error,
        (extract(epoch FROM due_at - clock_timestamp()) * 1000)::float8 AS "waitMs" FROM export WHERE id = ${made.id}`;
    return row;
  };
  const postponed = await read();
  t.match(postponed, { failures: 0, error: /the service could not make the object/ });
  t.ok((postponed?.waitMs ?? 0) > 0 && (postponed?.waitMs ?? 0) <= 30_000);
  exports.renderLines = renderLines;
  t.equal(exports.temporaryDirectory, folder);
  await letPass(test, 60_000);
  await drain(test.pipeline);
  t.match(await read(), { failures: 0, error: null });
  await assertExported(t, { pool: test.pool, store }, made);
});

t.test(
  'an object larger than the budget of temporary files fails, and ships once there is room',
  async (t) => {
    const scene = await setExportScene(t);
    const { test, store } = scene;
    const projectId = await scene.newProject();
    const made = await scene.exportOf(projectId);
    const { exports } = test.pipeline;
    const { renderLines, spoolBudget } = exports;
    exports.spoolBudget = createSpoolBudget(1024 * 1024);
    exports.renderLines = async function* (...of) {
      for (let i = 0; i < 32; i++) yield Buffer.alloc(64 * 1024, ' ');
      yield* renderLines(...of);
    };
    await scene.submit(projectId, 1);
    const [row] = await test.pool<{ failures: number; error: string }[]>`
    SELECT failures, last_error AS error FROM export WHERE id = ${made.id}`;
    t.match(row, {
      failures: 1,
      error: /^an object is larger than the 1 MiB that the service has .* EXPORT_SPOOL_MIB$/,
    });
    t.equal(exports.spoolBudget.bytesInUse(), 0);
    exports.spoolBudget = spoolBudget;
    exports.renderLines = renderLines;
    await letPass(test, HOUR_MS);
    await drain(test.pipeline);
    await assertExported(t, { pool: test.pool, store }, made);
    t.equal(spoolBudget.bytesInUse(), 0);
  },
);

t.test('the first failure of a row is logged with its reason, and the recovery', async (t) => {
  const scene = await setExportScene(t);
  const { test, store } = scene;
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  const lines = exportsLog(test.pipeline);
  store.fail(({ operation }) =>
    operation === 'PutObject' ? { kind: 'refuse', code: 'AccessDenied' } : undefined,
  );
  await scene.submit(projectId, 1);
  await letPass(test, HOUR_MS);
  await drain(test.pipeline);
  store.fail(() => undefined);
  await letPass(test, 2 * HOUR_MS);
  await drain(test.pipeline);
  t.match(lines, [
    {
      export: made.id,
      project: projectId,
      failures: 1,
      reason: /access is denied/,
      message: /failed; retrying/,
    },
    { export: made.id, project: projectId, message: /works again/ },
  ]);
  t.equal(lines.length, 2);
});
