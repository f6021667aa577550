import t from 'tap';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { until } from '../../../support/until.js';

const app = await startApp(t);

t.test('an API process stores the times of leaves that no worker seals, until they are sealed', async (t) => {
  const { key, projectId } = await newKey(app);
  const seal = await app.holdSealing();
  await app.pool`
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata,
                            metadata_state, commitment, dsse_key_id, signature, leaf_hash)
    SELECT l.id, i, 'sub_' || lpad(i::text, 26, '0'), ${projectId}, to_timestamp(1.7e9 + i), sha256('a'), 'purl',
           '{"schema":"purl"}', 1, sha256('b'), k.id, sha256('c'), sha256(i::text::bytea)
    FROM generate_series(0, 5999) i, log l, dsse_key k WHERE l.environment = 1 AND k.environment = 1`;
  const count = async () => {
    const [row] = await app.pool<{ n: number }[]>`SELECT count(*)::int AS n FROM tail_time`;
    return row?.n;
  };
  await until('the bounds are there', async () => (await count()) === 5);
  const early = new Date(1_700_000_003_000).toISOString();
  const { json } = await app.rest(`/v1/attestations?submitted_before=${early}`, { apiKey: key });
  const ids = (json.data as { id: string }[]).map(({ id }) => Number(id.slice('sub_'.length)));
  t.same(ids, [2, 1, 0]);
  await seal();
  await app.drain();
  await until('they are gone', async () => (await count()) === 0);
});
