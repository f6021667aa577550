/** Redactions, corrections and erased statements in every phase of a shipment: what is in the store in the end is what the tables say. */
import t from 'tap';
import {
  correctMetadata,
  eraseStatement,
  redactMetadata,
} from '../../../../src/server/attestations/submissions/metadata.js';
import type { Sql } from '../../../../src/server/database/connect.js';
import type { Exports } from '../../../../src/server/exports/ship/export-stage.js';
import { ship } from '../../../../src/server/exports/ship/ship.js';
import { reviseJob } from '../../../../src/server/jobs/job.js';
import type { Pipeline } from '../../../../src/server/pipeline/pipeline.js';
import { runJob } from '../../../../src/server/pipeline/stages.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { assertExported, type SceneExport, setExportScene } from '../../../support/exports/scene.js';
import { drain, unwilling, willing } from '../../../support/pipeline.js';
import { until } from '../../../support/until.js';
import { submitFor } from '../../../support/webhooks/webhooks.js';

const HOUR_MS = 3_600_000;
const scene = await setExportScene(t);
const { test, store, witnesses } = scene;
const { pool, pipeline } = test;
const [witness] = witnesses;
if (witness === undefined) throw new Error('there is no witness');

type Change = { run: (tx: Sql, id: string) => Promise<void>; isPublic?: boolean };
const CHANGES: Record<string, Change> = {
  redaction: { run: (tx, id) => redactMetadata(tx, id) },
  'correction to another schema': {
    run: (tx, id) =>
      correctMetadata(tx, id, { schema: 'other', canonical: '{"note":"corrected","schema":"other"}' }),
  },
  'redaction of a public one': { run: (tx, id) => redactMetadata(tx, id), isPublic: true },
  'erased statement': { run: eraseStatement, isPublic: true },
};

/** Ships everything due with a change of what the stage works with. */
async function shipAll(change: (exports: Exports) => Partial<Exports>): Promise<void> {
  const changed: Pipeline = test.another({
    exports: { ...pipeline.exports, ...change(pipeline.exports) },
  });
  const due = await pool<{ id: string; projectId: string }[]>`
    SELECT id, project_id AS "projectId" FROM export WHERE due_at <= clock_timestamp() ORDER BY id`;
  for (const { id, projectId } of due) await ship(changed, id, projectId);
}

/** Runs what is due up to the shipping. */
async function settleAll(): Promise<void> {
  await drain(test.another({ exports: { ...pipeline.exports, stopping: AbortSignal.abort() } }));
}

const mark = () => runJob(pipeline, reviseJob());

/** Calls `run` once. */
function once(run: () => Promise<unknown>): () => Promise<unknown> {
  let first: Promise<unknown> | undefined;
  return () => {
    first ??= run();
    return first;
  };
}

/** `submit` stores submissions of the project, and does not run what is due. */
type Phase = (submit: () => Promise<string[]>, change: (id: string) => Promise<unknown>) => Promise<void>;

const [one, three] = [1, 3];
const PHASES: Record<string, Phase> = {
  'before sealing': async (submit, change) => {
    const [id = ''] = await submit();
    await change(id);
  },
  'between seal and settle': async (submit, change) => {
    witness.manner = unwilling;
    const [id = ''] = await submit();
    await drain(pipeline);
    await change(id);
    await drain(pipeline);
    witness.manner = willing;
    await letPass(test, HOUR_MS);
  },
  'while its page is read': async (submit, change) => {
    const [id = ''] = await submit();
    await settleAll();
    const changeOnce = once(() => change(id));
    await shipAll(({ renderLines }) => ({
      renderLines: async function* (...asked) {
        for await (const line of renderLines(...asked)) {
          await changeOnce();
          yield line;
        }
        await changeOnce();
      },
    }));
  },
  'during the upload': async (submit, change) => {
    const [id = ''] = await submit();
    await settleAll();
    let release = () => {};
    const until_ = new Promise<void>((resolve) => {
      release = resolve;
    });
    store.requests.length = 0;
    store.fail(({ operation }) => (operation === 'PutObject' ? { kind: 'hold', until: until_ } : undefined));
    const shipping = shipAll(() => ({}));
    await until('it is sent', () => store.requests.some(({ operation }) => operation === 'PutObject'));
    await change(id);
    release();
    store.fail(() => undefined);
    await shipping;
  },
  'after the upload and before it is recorded': async (submit, change) => {
    const [id = ''] = await submit();
    await settleAll();
    const changeOnce = once(() => change(id));
    await shipAll(({ destinations }) => ({
      destinations: {
        ...destinations,
        use: async (row, run) => {
          const result = await destinations.use(row, run);
          await changeOnce();
          return result;
        },
      },
    }));
  },
  'after it': async (submit, change) => {
    const [id = ''] = await submit();
    await drain(pipeline);
    await change(id);
  },
  'while the store is away': async (submit, change) => {
    const [id = ''] = await submit();
    await store.goAway();
    await drain(pipeline);
    await change(id);
    await drain(pipeline);
    await store.comeBack();
    await letPass(test, HOUR_MS);
  },
};

async function makeExports(projectId: string): Promise<SceneExport[]> {
  return [
    await scene.exportOf(projectId),
    await scene.exportOf(projectId, { schema: 'purl' }),
    await scene.exportOf(projectId, { schema: 'other' }),
  ];
}

for (const [phase, run] of Object.entries(PHASES)) {
  for (const [what, change] of Object.entries(CHANGES)) {
    for (const isMarked of [true, false]) {
      t.test(`a ${what} ${phase}, ${isMarked ? 'marked at once' : 'marked later'}`, async (t) => {
        const projectId = await scene.newProject();
        const exports = await makeExports(projectId);
        const submit = () => submitFor(test, projectId, three, change.isPublic);
        await run(submit, async (id) => {
          await pool.begin((tx) => change.run(tx, id));
          if (isMarked) await mark();
        });
        await drain(pipeline);
        for (const each of exports) await assertExported(t, { pool, store }, each);
      });
    }
  }
}

t.test('a change that commits after the object was made', async (t) => {
  for (const change of Object.values(CHANGES)) {
    const projectId = await scene.newProject();
    const exports = await makeExports(projectId);
    const [id = ''] = await submitFor(test, projectId, one, change.isPublic);
    await settleAll();
    await pool.begin(async (tx) => {
      await change.run(tx, id);
      await drain(pipeline);
    });
    await drain(pipeline);
    for (const each of exports) await assertExported(t, { pool, store }, each);
  }
});

t.test('a correction and then a redaction leave one export and stay out of the other', async (t) => {
  const projectId = await scene.newProject();
  const exports = await makeExports(projectId);
  const [id = ''] = await scene.submit(projectId, three);
  for (const what of ['correction to another schema', 'redaction']) {
    await pool.begin(async (tx) => CHANGES[what]?.run(tx, id));
    await drain(pipeline);
    for (const each of exports) await assertExported(t, { pool, store }, each);
  }
});
