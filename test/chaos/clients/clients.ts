/** Clients at work: they create, read, list, correct and redact, and look at what is another project's. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../random.js';
import type { Acknowledged } from '../record.js';
import type { Owner, Scene } from '../scene/scene.js';
import { type Answer, call, isPassing } from './call.js';
import { type Creator, complain, pickApi } from './creations.js';

export type Clients = {
  /** Requests other than creations. */
  counts: { reads: number; changes: number };
  /** Lets each finish what it has begun. */
  stop(): Promise<void>;
};

type Known = { owner: Owner; made: Acknowledged };
type Work = {
  scene: Scene;
  random: Random;
  creator: Creator;
  known: Known[];
  counts: Clients['counts'];
  running: () => boolean;
};

const KNOWN = 5_000;
const PAUSE_MS = 100;

/** Starts them. `rate` is creations a second of all together, as long as nothing holds them up. */
export function startClients(
  scene: Scene,
  creator: Creator,
  { random, rate, clients }: { random: Random; rate: number; clients: number },
): Clients {
  let stopped = false;
  const counts = { reads: 0, changes: 0 };
  const work: Work = { scene, random, creator, known: [], counts, running: () => !stopped };
  const pauseMs = (1000 * clients) / rate;
  const client = async () => {
    await delay(random.fraction() * pauseMs);
    while (!stopped) {
      const begun = performance.now();
      await create(work);
      await random.pick([get, get, list, getForeign, batches])(work);
      await delay(Math.max(10, 2 * pauseMs * random.fraction() - (performance.now() - begun)));
    }
  };
  const running = Promise.all(Array.from({ length: clients }, client));
  running.catch(() => {});
  return {
    counts,
    stop: async () => {
      stopped = true;
      await running;
    },
  };
}

/** Most with a key; a key is also sent twice at once, as by a client that does not wait for the first. */
async function create({ scene, random, creator, known, counts, running }: Work): Promise<void> {
  const owner = random.pick(scene.owners);
  const way = random.fraction();
  const lenient = way > 0.9;
  const creation = creator.newCreation(owner, { keyed: way > 0.2, lenient });
  const isDoubled = creation.key !== undefined && way < 0.3;
  const [made] = await Promise.all([
    creator.create(creation),
    ...(isDoubled ? [creator.create(creation)] : []),
  ]);
  if (made === undefined) return;
  if (lenient) {
    counts.changes++;
    await correct({ scene, random, running }, owner, made);
  }
  if (random.fraction() < 0.06) {
    counts.changes++;
    await redact({ scene, random, running }, owner, made);
  }
  known.push({ owner, made });
  if (known.length > KNOWN) known.splice(0, KNOWN / 2);
}

type Changing = Pick<Work, 'scene' | 'random' | 'running'>;

async function correct(work: Changing, owner: Owner, made: Acknowledged): Promise<void> {
  const purl = `pkg:npm/${owner.name}-corrected-${made.index}@1.0.0`;
  const body = { metadata: { schema: 'purl', purl } };
  const answer = await change(work, owner, made.id, { method: 'PATCH', body, key: `correct-${made.id}` });
  if (answer?.status === 200)
    work.scene.record.write({ what: 'changed', id: made.id, to: 'corrected', purl });
}

async function redact(work: Changing, owner: Owner, made: Acknowledged): Promise<void> {
  const answer = await change(work, owner, made.id, { method: 'DELETE', key: `redact-${made.id}` });
  if (answer?.status === 200) work.scene.record.write({ what: 'changed', id: made.id, to: 'redacted' });
}

type Change = { method: string; body?: unknown; key: string };

/** Sends a change until it is answered; undefined when the clients are to end before. */
async function change(work: Changing, owner: Owner, id: string, wanted: Change): Promise<Answer | undefined> {
  const { scene, random, running } = work;
  const { key, ...request } = wanted;
  while (running()) {
    const api = pickApi(scene, random);
    if (api !== undefined) {
      const url = `${api}/v1/attestations/${id}`;
      const answer = await call(url, { apiKey: owner.apiKey, idempotencyKey: key, ...request });
      if (answer.status === 200) return answer;
      if (!isPassing(answer)) {
        complain(scene.record, `${wanted.method} of ${id}`, answer);
        return answer;
      }
    }
    await delay(PAUSE_MS);
  }
  return undefined;
}

/** What was acknowledged can be read from then on, by whoever it was acknowledged to. */
async function get({ scene, random, known, counts }: Work): Promise<void> {
  const api = pickApi(scene, random);
  if (api === undefined || known.length === 0) return;
  const { owner, made } = random.pick(known);
  const answer = await call(`${api}/v1/attestations/${made.id}`, { apiKey: owner.apiKey });
  counts.reads++;
  const { status, body } = answer;
  if (status === 200) {
    if (body.log_index !== made.index || body.leaf_sha256 !== made.leaf)
      complain(scene.record, `${made.id}, acknowledged at ${made.index}, when read`, answer);
  } else if (!isPassing(answer)) complain(scene.record, `a read of ${made.id}`, answer);
}

async function getForeign({ scene, random, known, counts }: Work): Promise<void> {
  const api = pickApi(scene, random);
  if (api === undefined || known.length === 0) return;
  const { owner, made } = random.pick(known);
  const stranger = random.pick(scene.owners.filter(({ name }) => name !== owner.name));
  const answer = await call(`${api}/v1/attestations/${made.id}`, { apiKey: stranger.apiKey });
  counts.reads++;
  if (answer.status !== 404 && !isPassing(answer))
    complain(scene.record, `${made.id} of ${owner.name}, asked for by ${stranger.name}`, answer);
}

/** An artifact's name begins with its owner's, and so does the package in its metadata. */
async function list({ scene, random, counts }: Work): Promise<void> {
  const api = pickApi(scene, random);
  if (api === undefined) return;
  const owner = random.pick(scene.owners);
  const answer = await call(`${api}/v1/attestations?limit=50`, { apiKey: owner.apiKey });
  counts.reads++;
  if (answer.status !== 200) {
    if (!isPassing(answer)) complain(scene.record, 'a list', answer);
    return;
  }
  for (const { id, metadata } of answer.body.data ?? []) {
    const purl = metadata?.purl ?? 'not a package';
    const isOwn = purl === 'not a package' || String(purl).startsWith(`pkg:npm/${owner.name}-`);
    if (!isOwn)
      scene.record.write({ what: 'wrong', problem: `${owner.name} was shown ${id} of somebody else` });
  }
}

async function batches({ scene, random, counts }: Work): Promise<void> {
  const api = pickApi(scene, random);
  if (api === undefined) return;
  const { apiKey } = random.pick(scene.owners);
  const answer = await call(`${api}/v1/batches?limit=20`, { apiKey });
  counts.reads++;
  if (answer.status !== 200 && !isPassing(answer)) complain(scene.record, 'a list of batches', answer);
}
