/** A batch whose process is killed before or after a commit is sent once more: each of its items exists once. */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Break } from '../../support/breaking/proxy.js';
import { newCreation } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import type { Acknowledged } from '../../support/judging/consistent.js';
import { letLeasesRunOut, untilWitnessed } from '../../support/wait-for-idle.js';

type Item = { artifact: { sha256: string }; metadata: object; idempotency_key: string };
type Result = {
  outcome: string;
  submission: { id: string; log_index: number; leaf_sha256: string };
};

/** Items that were created before, and new ones: more than one write takes, so that the batch is killed in its middle. */
const KNOWN = 150;
const NEW = 150;
/** Of the new ones those that the first write stores; `SLICE` of the handler less the known ones. */
const IN_FIRST_WRITE = 100;

const scene = await setScene(t);
const { installation, pool, servers, apiKey } = scene;
const acknowledged: Acknowledged[] = [];
let api = await installation.startApi();

const makeItems = (run: string, count: number): Item[] =>
  Array.from({ length: count }, (_, i) => ({
    artifact: { sha256: newCreation().artifactSha256 },
    metadata: { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' },
    idempotency_key: `${run}-${i}`,
  }));

/** Sends a batch once; undefined if no answer comes. */
async function send(items: readonly Item[]): Promise<Result[] | undefined> {
  const answer = await fetch(`${api.baseUrl}/v1/attestations:batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ items }),
  }).catch(() => undefined);
  if (answer === undefined) return undefined;
  return ((await answer.json()) as { results: Result[] }).results;
}

function acknowledge(items: readonly Item[], results: readonly Result[]): void {
  for (const [i, { submission }] of results.entries()) {
    const { artifact, idempotency_key: idempotencyKey } = items[i] as Item;
    const { id, log_index: logIndex, leaf_sha256: leafSha256 } = submission;
    acknowledged.push({ id, logIndex, leafSha256, artifactSha256: artifact.sha256, idempotencyKey });
  }
}

const countOutcomes = (results: readonly Result[] = []) => ({
  created: results.filter(({ outcome }) => outcome === 'created').length,
  replayed: results.filter(({ outcome }) => outcome === 'replayed').length,
});

for (const when of ['before the request arrives', 'before the answer arrives'] as Break[]) {
  t.test(`an API killed in the second write of a batch, ${when}`, async (t) => {
    const known = makeItems(randomUUID(), KNOWN);
    acknowledge(known, (await send(known)) ?? []);
    const run = randomUUID();
    const items = [...known, ...makeItems(run, NEW)];
    const held = servers.postgres.proxy.holdNext(when, (sent) =>
      sent.includes(`${run}-${IN_FIRST_WRITE + 1}"`),
    );
    const answer = send(items);
    await held;
    await api.kill();
    t.equal(await answer, undefined);
    api = await installation.startApi();
    const again = (await send(items)) ?? [];
    const isStored = when === 'before the answer arrives';
    const created = isStored ? 0 : NEW - IN_FIRST_WRITE;
    t.same(countOutcomes(again), { created, replayed: items.length - created });
    acknowledge(items.slice(KNOWN), again.slice(KNOWN));
    const third = await send(items);
    t.same(countOutcomes(third), { created: 0, replayed: items.length });
    t.same(
      third?.map(({ submission }) => submission.id),
      again.map(({ submission }) => submission.id),
    );
    const [row] = await pool`
      SELECT count(*)::integer AS n FROM submission
      WHERE encode(artifact_sha256, 'hex') = ANY(${items.map(({ artifact }) => artifact.sha256)})`;
    t.equal(row?.n, items.length, 'each exists once');
  });
}

t.test('every acknowledged submission is stored and witnessed', async (t) => {
  const worker = await installation.startWorker();
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  const { leaves } = await scene.assertConsistent(t, acknowledged);
  t.equal(leaves, acknowledged.length);
  await worker.stop();
  await api.stop();
});
