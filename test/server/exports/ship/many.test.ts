/** Many exports: those whose store refuses or never answers delay nobody else's. */
import t from 'tap';
import { deriveKeyRing } from '../../../../src/server/keys/key-ring.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { linesOf, makeExport, objectsOf } from '../../../support/exports/exports.js';
import { startStore } from '../../../support/exports/s3/fixture.js';
import { until } from '../../../support/until.js';

const MANY = 199;
const app = await startApp(t, { env: { ALLOW_INSECURE_DESTINATIONS: 'true' } });
const store = await startStore(t);
const keys = deriveKeyRing(app.config.secrets.secretKeys, 'encryption');

type Owner = Awaited<ReturnType<typeof newKey>>;

const newOwner = () => newKey(app);

async function exportsOf({ projectId }: { projectId: string }, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push(await makeExport(app.pool, store, { projectId, keys }));
  return ids;
}

async function submit({ key }: Pick<Owner, 'key'>): Promise<string> {
  const body = {
    artifact: { sha256: 'ab'.repeat(32) },
    metadata: { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' },
  };
  const { json } = await app.rest('/v1/attestations', { method: 'POST', body, apiKey: key });
  return String((json as { id: string }).id);
}

async function untilThere(exportId: string, ids: readonly string[]): Promise<void> {
  await until('it is shipped', async () => {
    const there = new Set((await linesOf(store, exportId)).map(({ submission }) => submission.id));
    return ids.every((id) => there.has(id));
  });
}

t.test('199 exports that hang or reject do not delay that of another project', async (t) => {
  const [bad, good] = [await newOwner(), await newOwner()];
  const broken = new Set(await exportsOf(bad, MANY));
  const [healthy = ''] = await exportsOf(good, 1);
  const hanging = new Set([...broken].filter((_, i) => i % 2 === 0));
  const met = new Set<string>();
  store.fail(({ key }) => {
    const id = key.split('/').find((part) => part.startsWith('exp_')) ?? '';
    if (!broken.has(id)) return undefined;
    met.add(id);
    return hanging.has(id) ? { kind: 'hang' } : { kind: 'refuse', code: 'AccessDenied' };
  });
  await submit(bad);
  await until('many hang', () => [...met].filter((id) => hanging.has(id)).length > 20);
  const sent: string[] = [];
  for (let i = 0; i < 5; i++) {
    sent.push(await submit(good));
    await untilThere(healthy, sent);
  }
  for (const id of broken) t.equal((await objectsOf(store, id)).size, 0);
  t.equal(new Set((await linesOf(store, healthy)).map(({ submission }) => submission.id)).size, sent.length);
  store.fail(() => undefined);
  await app.pool`UPDATE export SET status = 3, due_at = NULL, lease = lease + 1 WHERE id = ANY(${[...broken]})`;
});

t.test('two hundred exports of fifty projects all ship', async (t) => {
  const owners = await Promise.all(Array.from({ length: 50 }, newOwner));
  const owned: [exportId: string, submission: string][] = [];
  for (const owner of owners) {
    const ids = await exportsOf(owner, 4);
    const submission = await submit(owner);
    for (const id of ids) owned.push([id, submission]);
  }
  for (const [exportId, submission] of owned) await untilThere(exportId, [submission]);
  for (const [exportId] of owned) t.equal((await linesOf(store, exportId)).length, 1);
  t.equal(owned.length, 200);
});
