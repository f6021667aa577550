/** A client of a service whose database has a standby: remembers what it was told, and looks for it afterwards. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { creation, invalidCreation } from '../../server/rpc/samples.js';
import type { App } from '../../support/app.js';
import type { RestAnswer, RestOptions } from '../../support/calling/rpc-clients.js';
import { newKey, type TestKey } from '../../support/calling/test-keys.js';
import { type Acknowledged, assertConsistent } from '../../support/judging/consistent.js';
import { until } from '../../support/until.js';

/** A request that may be sent again; what a 2xx says is remembered. */
export type Request = () => Promise<RestAnswer | 'broken'>;

export type Client = {
  create(isKeyed: boolean): Request;
  /** Of several items, each with its key. */
  createBatch(items: number): Request;
  redact(id: string): Request;
  correct(id: string, isKeyed: boolean): Request;
  /** With a key. */
  createWebhook(): Request;
  /** Creates what can be redacted, or corrected, and throws unless that is acknowledged. */
  makeSubmission(): Promise<string>;
  makeInvalid(): Promise<string>;
  /** What was acknowledged so far: submissions, and ids of what was redacted, corrected and subscribed. */
  told: Told;
  read(path: string): Promise<RestAnswer>;
};

type Told = Record<'redacted' | 'corrected' | 'webhooks', Set<string>> & { created: Acknowledged[] };

const PATH = '/v1/attestations';
/** Nobody listens there. */
const WEBHOOK = { url: 'http://127.0.0.1:9/hook', events: ['attestation.failed'] };
const CORRECTION = { schema: 'purl', purl: 'pkg:npm/corrected@1.0.0' };

/** A client with a key and a project of its own. */
export async function openClient(app: App): Promise<Client> {
  const owner = await newKey(app);
  const told: Told = { created: [], redacted: new Set(), corrected: new Set(), webhooks: new Set() };
  const send = sender(app, owner);
  const create = (body: JsonObject, key: string | undefined): Request =>
    send(PATH, { body, headers: keyHeader(key) }, ({ json }) => {
      told.created.push(acknowledged(json, key));
    });
  const make = async (body: JsonObject) => {
    const answer = await create(body, undefined)();
    if (answer === 'broken' || answer.status !== 201) throw new Error('not created');
    return String(answer.json.id);
  };
  return {
    told,
    create: (isKeyed) => create(creation(newArtifact()), isKeyed ? randomUUID() : undefined),
    createBatch: (count) => {
      const items = Array.from({ length: count }, () => ({
        ...creation(newArtifact()),
        idempotency_key: randomUUID(),
      }));
      return send(`${PATH}:batch`, { body: { items } }, ({ json }) => {
        for (const [i, { submission }] of (json.results as { submission?: JsonObject }[]).entries()) {
          if (submission) told.created.push(acknowledged(submission, items[i]?.idempotency_key));
        }
      });
    },
    redact: (id) => send(`${PATH}/${id}`, { method: 'DELETE' }, () => void told.redacted.add(id)),
    correct: (id, isKeyed) => {
      const headers = keyHeader(isKeyed ? randomUUID() : undefined);
      const body = { metadata: CORRECTION };
      return send(`${PATH}/${id}`, { method: 'PATCH', body, headers }, () => void told.corrected.add(id));
    },
    createWebhook: () => {
      const headers = keyHeader(randomUUID());
      return send('/v1/webhooks', { body: WEBHOOK, headers }, ({ json }) => {
        told.webhooks.add(String(json.id));
      });
    },
    makeSubmission: () => make(creation(newArtifact())),
    makeInvalid: () => make({ ...invalidCreation(newArtifact()), validation: 'lenient' }),
    read: (path) => app.rest(path, { apiKey: owner.key }),
  };
}

function sender(app: App, { key: apiKey }: TestKey) {
  return (path: string, options: RestOptions, remember: (answer: RestAnswer) => void): Request =>
    async () => {
      const answer = await app.rest(path, { ...options, apiKey }).catch(() => 'broken' as const);
      if (answer !== 'broken' && answer.status < 300) remember(answer);
      return answer;
    };
}

const newArtifact = () => randomBytes(32).toString('hex');
const keyHeader = (key: string | undefined): Record<string, string> =>
  key === undefined ? {} : { 'idempotency-key': key };

function acknowledged(shown: JsonObject, idempotencyKey: string | undefined): Acknowledged {
  return {
    id: String(shown.id),
    logIndex: Number(shown.log_index),
    leafSha256: String(shown.leaf_sha256),
    artifactSha256: String((shown.artifact as JsonObject).sha256),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
}

/**
 * Fails the test unless the service goes on with all that its client was told: each submission at its index with its leaf,
 * each redaction and correction; and unless it takes, seals and witnesses new ones.
 */
export async function assertKept(t: Test, app: App, client: Client): Promise<void> {
  const { told } = client;
  await until('the database answers', async () => (await app.pool`SELECT 1`).length === 1);
  const frozen = await app.pool<{ reason: string }[]>`
    SELECT frozen_reason AS reason FROM log WHERE frozen_at IS NOT NULL`;
  t.same(frozen, [], 'no log is frozen');
  const lost = await app.pool<{ id: string }[]>`
    SELECT id FROM unnest(${told.created.map(({ id }) => id)}::text[]) AS a(id)
    WHERE NOT EXISTS (SELECT FROM submission s WHERE s.id = a.id)`;
  t.same(lost, [], `${told.created.length} acknowledged submissions are there`);
  if (frozen.length + lost.length > 0) return;
  const answer = await client.create(true)();
  t.equal(answer !== 'broken' && answer.status, 201, 'a new submission is taken');
  await app.drain();
  await assertConsistent(t, { pool: app.pool, acknowledged: told.created, register: app.register });
  for (const id of told.redacted)
    t.match(
      (await client.read(`${PATH}/${id}`)).json,
      { metadata_state: 'redacted' },
      `${id} stays redacted`,
    );
  for (const id of told.corrected)
    t.match((await client.read(`${PATH}/${id}`)).json, { metadata: CORRECTION }, `${id} stays corrected`);
  for (const id of told.webhooks)
    t.equal((await client.read(`/v1/webhooks/${id}`)).status, 200, `${id} stays subscribed`);
}
