/** Creating, as good clients do: an unknown outcome is asked about again, under the same key. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../random.js';
import type { Acknowledged, RecordWriter } from '../record.js';
import type { Owner, Scene } from '../scene/scene.js';
import { type Answer, type Body, call, isPassing } from './call.js';

export type Creation = {
  owner: Owner;
  artifact: string;
  /** Without one, each time it is sent may be a submission of its own. */
  key?: string;
  metadata: { schema: string; purl: string };
  validation?: 'lenient';
};

export type Creator = {
  /**
   * Sends it until there is an answer; undefined when it has no key and nobody can know.
   *
   * @param api base URL to ask; any that is up when undefined
   */
  create(creation: Creation, api?: () => string | undefined): Promise<Acknowledged | undefined>;
  /** A creation that no other is equal to. */
  newCreation(owner: Owner, options?: { keyed?: boolean; lenient?: boolean }): Creation;
  counts: { acknowledged: number; unknown: number; resolved: number; refused: number };
  /** Ends waiting for answers. */
  abandon(): void;
};

const PAUSE_MS = 100;
/** How often one without a key is sent at most. */
const UNKEYED_TRIES = 2;

/** Makes creations of the scene's owners; what is sent and answered is recorded. */
export function createCreator(scene: Scene, random: Random): Creator {
  const counts = { acknowledged: 0, unknown: 0, resolved: 0, refused: 0 };
  let serial = 0;
  let abandoned = false;
  return {
    counts,
    abandon: () => {
      abandoned = true;
    },
    newCreation: (owner, { keyed = true, lenient = false } = {}) => {
      const name = `${owner.name}-${++serial}-${random.below(2 ** 32).toString(16)}`;
      const artifact = createHash('sha256').update(name).digest('hex');
      const purl = lenient ? 'not a package' : `pkg:npm/${name}@1.0.0`;
      return {
        owner,
        artifact,
        metadata: { schema: 'purl', purl },
        ...(keyed ? { key: name } : {}),
        ...(lenient ? { validation: 'lenient' as const } : {}),
      };
    },
    create: async (creation, api = () => pickApi(scene, random)) => {
      let wasUnknown = false;
      for (let tries = 1; !abandoned; tries++) {
        const url = await untilUp(api, () => abandoned);
        if (url === undefined) return undefined;
        const answer = await send(scene.record, url, creation);
        count(counts, answer, wasUnknown);
        if (answer.status === 201) return acknowledge(scene.record, creation, answer.body);
        if (!isPassing(answer)) complain(scene.record, 'a create', answer);
        wasUnknown ||= answer.status === 'broken';
        if (creation.key === undefined && tries >= UNKEYED_TRIES) return undefined;
        await delay(PAUSE_MS * (1 + random.below(4)));
      }
      return undefined;
    },
  };
}

/** Waits for an API that is up; undefined when nobody waits for it any more. */
async function untilUp(
  api: () => string | undefined,
  isAbandoned: () => boolean,
): Promise<string | undefined> {
  while (!isAbandoned()) {
    const url = api();
    if (url !== undefined) return url;
    await delay(PAUSE_MS);
  }
  return undefined;
}

/** @param wasUnknown whether an earlier attempt of the same creation came to nobody knows what */
function count(counts: Creator['counts'], { status }: Answer, wasUnknown: boolean): void {
  if (status === 201) {
    counts.acknowledged++;
    if (wasUnknown) counts.resolved++;
  } else if (status !== 'broken') counts.refused++;
  else if (!wasUnknown) counts.unknown++;
}

/** Records an answer that no fault explains. */
export function complain(record: RecordWriter, what: string, { status, text }: Answer): void {
  record.write({ what: 'wrong', problem: `${what} was answered with ${status}: ${text.slice(0, 300)}` });
}

/** Any API that is up. */
export function pickApi(scene: Scene, random: Random): string | undefined {
  const apis = scene.apis();
  return apis[random.below(apis.length)];
}

function send(record: RecordWriter, url: string, creation: Creation): Promise<Answer> {
  const { owner, artifact, key, metadata, validation } = creation;
  record.write({ what: 'sent', owner: owner.name, artifact, ...(key === undefined ? {} : { key }) });
  return call(`${url}/v1/attestations`, {
    apiKey: owner.apiKey,
    method: 'POST',
    idempotencyKey: key,
    body: { artifact: { sha256: artifact }, metadata, ...(validation === undefined ? {} : { validation }) },
  });
}

function acknowledge(record: RecordWriter, { owner, artifact, key }: Creation, body: Body): Acknowledged {
  const line: Acknowledged = {
    what: 'acknowledged',
    owner: owner.name,
    artifact,
    ...(key === undefined ? {} : { key }),
    id: body.id ?? '',
    index: body.log_index ?? -1,
    leaf: body.leaf_sha256 ?? '',
  };
  record.write(line);
  return line;
}
