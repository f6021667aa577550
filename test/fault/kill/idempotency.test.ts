/**
 * Hundreds of equal and conflicting requests at once, by REST, Connect and gRPC, over several processes of which one is
 * killed: one effect a key.
 */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { AttestationService, ValidationMode } from '../../../gen/attestation/v1/attestations_pb.js';
import { EventType, WebhookService } from '../../../gen/attestation/v1/webhooks_pb.js';
import { formatSecretKey } from '../../../src/server/keys/key-ring.js';
import { type Surface, surfacesOf } from '../../support/calling/rpc-clients.js';
import { setScene } from '../../support/fault-fixture.js';
import { isLong } from '../../support/long.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';
import { letLeasesRunOut, untilWitnessed } from '../../support/wait-for-idle.js';

/** One of the two messages that are sent under a key. */
type Message = { method: DescMethodUnary; input: Record<string, unknown> };
/** What a message came to in the end. */
type Result = { choice: number; code: string; id: string; isReplay: boolean };

const KEYS = isLong ? 8 : 3;
const REQUESTS = 24;
const ATTEMPTS = 500;
const PAUSE_MS = 20;
/** What a good client tries again. */
const PASSING = ['broken', 'service.unavailable', 'idempotency.in_progress'];

const scene = await setScene(t, { env: { ALLOW_INSECURE_DESTINATIONS: 'true' } });
const { installation, pool, apiKey } = scene;
const apis: ServiceProcess[] = [await installation.startApi(), await installation.startApi()];
const worker = await installation.startWorker();

const artifact = (name: string) => createHash('sha256').update(name).digest('hex');
const metadata = (version: number): JsonObject => ({ schema: 'purl', purl: `pkg:npm/a@${version}.0.0` });
const create = (name: string, said = metadata(1)): Message => ({
  method: AttestationService.method.createAttestation,
  input: { artifact: { sha256: artifact(name) }, metadata: said },
});

const known = new Map<string, Surface[]>();
t.teardown(() => {
  for (const surface of [...known.values()].flat()) surface.close();
});

function surfacesAt({ baseUrl }: ServiceProcess): Surface[] {
  const surfaces = known.get(baseUrl) ?? surfacesOf(baseUrl, { answered: () => {} });
  known.set(baseUrl, surfaces);
  return surfaces;
}

let turn = 0;

/** Sends by one surface of one process after the other. */
async function send({ method, input }: Message, key?: string) {
  const surfaces = surfacesAt(apis[turn % apis.length]!);
  const surface = surfaces[Math.floor(turn++ / apis.length) % surfaces.length]!;
  const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
  const outcome = await surface.call(method, input as never, apiKey, headers).catch(() => undefined);
  const isAnswer = outcome?.code === 'ok' || outcome?.code.includes('.');
  if (outcome === undefined || !isAnswer) return { code: 'broken', id: '', isReplay: false };
  const isReplay = outcome.headers['idempotent-replayed'] === 'true';
  return { code: outcome.code, id: String(outcome.response.id), isReplay };
}

async function untilAnswered(message: Message, choice: number, key: string): Promise<Result> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const answer = await send(message, key);
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
  const results = await storm('create', (n) => [create(`${n} a`), create(`${n} b`)]);
  const ids = assertOneEach(t, results);
  t.equal(await count(pool`SELECT FROM submission`), KEYS);
  t.equal(await count(pool`SELECT FROM submission WHERE id = ANY(${ids})`), KEYS);
});

t.test('corrections', async (t) => {
  const ids = await Promise.all(
    Array.from({ length: KEYS }, async (_, n) => {
      const { method, input } = create(`invalid ${n}`, { schema: 'purl' });
      return (await send({ method, input: { ...input, validation: ValidationMode.LENIENT } })).id;
    }),
  );
  const correct = (n: number, version: number): Message => ({
    method: AttestationService.method.updateAttestation,
    input: { id: ids[n], metadata: metadata(version) },
  });
  const results = await storm('correct', (n) => [correct(n, 1), correct(n, 2)]);
  t.same(assertOneEach(t, results), ids);
  t.equal(await count(pool`SELECT FROM audit_entry WHERE resource_id = ANY(${ids})`), KEYS);
});

t.test('subscriptions', async (t) => {
  const subscribe = (name: string): Message => ({
    method: WebhookService.method.createWebhook,
    input: {
      url: `http://127.0.0.1:1/${encodeURIComponent(name)}`,
      events: [EventType.ATTESTATION_WITNESSED],
    },
  });
  const results = await storm('subscribe', (n) => [subscribe(`${n} a`), subscribe(`${n} b`)]);
  const ids = assertOneEach(t, results);
  t.equal(await count(pool`SELECT FROM webhook`), KEYS);
  t.equal(await count(pool`SELECT FROM webhook WHERE id = ANY(${ids})`), KEYS);
});

t.test('a retry gets the first resource when the secret key has been rotated meanwhile', async (t) => {
  const first = await send(create('rotated'), 'rotated');
  const { SECRET_KEY } = installation.env;
  installation.env.SECRET_KEY = `${formatSecretKey('k2', Buffer.alloc(32, 8))},${SECRET_KEY}`;
  for (const [at, api] of apis.entries()) {
    await api.stop();
    apis[at] = await installation.startApi();
  }
  for (let i = 0; i < apis.length; i++) {
    t.same(await send(create('rotated'), 'rotated'), { ...first, isReplay: true });
    t.equal((await send(create('another'), 'rotated')).code, 'idempotency.key_reused');
  }
});

t.test('the log is consistent after all that', async (t) => {
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  t.match(await scene.assertConsistent(t, []), { leaves: 2 * KEYS + 1 });
  for (const each of [...apis, worker]) await each.stop();
});
