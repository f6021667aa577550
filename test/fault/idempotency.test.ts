/** Hundreds of equal and conflicting requests at once, over several processes of which one is killed: one effect a key. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { letLeasesRunOut, untilWitnessed } from '../support/quiet.js';
import { setScene } from '../support/scene.js';
import type { ServiceProcess } from '../support/service.js';
import { until } from '../support/until.js';

/** One of the two messages that are sent under a key. */
type Message = { method: string; path: string; body: object };
/** What a message came to in the end. */
type Result = { choice: number; code: string; id: string; isReplay: boolean };

const KEYS = 8;
const REQUESTS = 12;
const ATTEMPTS = 500;
const PAUSE_MS = 20;
/** What a good client tries again. */
const PASSING = ['broken', 'service.unavailable', 'idempotency.in_progress'];

const scene = await setScene(t, { env: { ALLOW_INSECURE_DESTINATIONS: 'true' } });
const { installation, pool, apiKey } = scene;
const apis: ServiceProcess[] = [await installation.startApi(), await installation.startApi()];
const worker = await installation.startWorker();

const artifact = (name: string) => createHash('sha256').update(name).digest('hex');
const metadata = (version: number) => ({ schema: 'purl', purl: `pkg:npm/a@${version}.0.0` });

async function send({ method, path, body }: Message, at: number, key?: string) {
  try {
    const answer = await fetch(`${apis[at % apis.length]!.baseUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      body: JSON.stringify(body),
    });
    const text = (await answer.json()) as { id?: string; error?: { code: string } };
    const isReplay = answer.headers.get('idempotent-replayed') === 'true';
    return { code: answer.ok ? 'ok' : (text.error?.code ?? ''), id: text.id ?? '', isReplay };
  } catch {
    return { code: 'broken', id: '', isReplay: false };
  }
}

async function untilAnswered(message: Message, choice: number, key: string): Promise<Result> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const answer = await send(message, attempt + choice, key);
    if (!PASSING.includes(answer.code)) return { choice, ...answer };
    await delay(PAUSE_MS);
  }
  throw new Error(`a request under ${key} was not answered in ${ATTEMPTS} attempts`);
}

/** Sends both messages of every key many times at once, while an API is killed and another takes its place. */
async function storm(
  name: string,
  messages: (n: number) => readonly [Message, Message],
): Promise<Result[][]> {
  let answered = 0;
  const under = Array.from({ length: KEYS }, (_, n) => {
    const pair = messages(n);
    const requests = Array.from({ length: REQUESTS }, async (_, i) => {
      const result = await untilAnswered(pair[i % 2]!, i % 2, `${name}-${n}`);
      answered++;
      return result;
    });
    return Promise.all(requests);
  });
  await until('a part has been answered', () => answered >= REQUESTS);
  await apis[0]!.kill();
  apis[0] = await installation.startApi();
  return Promise.all(under);
}

/** Fails unless under each key one message won and the other was refused. @returns the resources */
function assertOneEach(t: Test, results: readonly Result[][]): string[] {
  return results.map((under) => {
    const won = under.filter(({ code }) => code === 'ok');
    t.equal(new Set(won.map(({ choice }) => choice)).size, 1, 'one message won');
    t.equal(new Set(won.map(({ id }) => id)).size, 1, 'and all who sent it got the same resource');
    t.ok(won.filter(({ isReplay }) => !isReplay).length <= 1, 'one answer at most was not a replay');
    const lost = under.filter(({ code }) => code !== 'ok').map(({ code }) => code);
    t.same(new Set(lost), new Set(['idempotency.key_reused']), 'the other was refused');
    t.equal(won.length, REQUESTS / 2);
    return won[0]?.id ?? '';
  });
}

const count = async (rows: PromiseLike<readonly unknown[]>) => (await rows).length;

t.test('creations', async (t) => {
  const create = (name: string): Message => ({
    method: 'POST',
    path: '/v1/attestations',
    body: { artifact: { sha256: artifact(name) }, metadata: metadata(1) },
  });
  const results = await storm('create', (n) => [create(`${n} a`), create(`${n} b`)]);
  const ids = assertOneEach(t, results);
  t.equal(await count(pool`SELECT FROM submission`), KEYS);
  t.equal(await count(pool`SELECT FROM submission WHERE id = ANY(${ids})`), KEYS);
});

t.test('corrections', async (t) => {
  const ids = await Promise.all(
    Array.from({ length: KEYS }, async (_, n) => {
      const body = { artifact: { sha256: artifact(`invalid ${n}`) }, metadata: { schema: 'purl' } };
      const creation = { method: 'POST', path: '/v1/attestations', body: { ...body, validation: 'lenient' } };
      return (await send(creation, 1)).id;
    }),
  );
  const correct = (n: number, version: number): Message => ({
    method: 'PATCH',
    path: `/v1/attestations/${ids[n]}`,
    body: { metadata: metadata(version) },
  });
  const results = await storm('correct', (n) => [correct(n, 1), correct(n, 2)]);
  t.same(assertOneEach(t, results), ids);
  t.equal(await count(pool`SELECT FROM audit_entry WHERE resource_id = ANY(${ids})`), KEYS);
});

t.test('subscriptions', async (t) => {
  const subscribe = (name: string): Message => ({
    method: 'POST',
    path: '/v1/webhooks',
    body: { url: `http://127.0.0.1:1/${encodeURIComponent(name)}`, events: ['attestation.witnessed'] },
  });
  const results = await storm('subscribe', (n) => [subscribe(`${n} a`), subscribe(`${n} b`)]);
  const ids = assertOneEach(t, results);
  t.equal(await count(pool`SELECT FROM webhook`), KEYS);
  t.equal(await count(pool`SELECT FROM webhook WHERE id = ANY(${ids})`), KEYS);
});

t.test('the log is consistent after all that', async (t) => {
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  t.match(await scene.assertConsistent(t, []), { leaves: 2 * KEYS });
  for (const each of [...apis, worker]) await each.stop();
});
