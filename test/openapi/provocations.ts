/** For every documented error, how to get it from an operation that documents it. */
import { randomBytes } from 'node:crypto';
import { ulid } from 'ulid';
import { SubmissionService } from '../../gen/attestation/admin/v1/submissions_pb.js';
import { StatementForm } from '../../gen/attestation/v1/attestations_pb.js';
import { insertArchivedObject } from '../../src/server/attestations/archived/archived-objects.js';
import { INVALID, invalidCreation, type Known, METADATA, NOTHING, SLSA } from '../server/rpc/samples.js';
import { submit } from '../server/rpc/submitting.js';
import type { App } from '../support/app.js';
import { adminOf } from '../support/calling/admin.js';
import { newKey, type TestKey } from '../support/calling/test-keys.js';
import { BUCKET, OWNER } from '../support/exports/s3/fixture.js';
import { startS3Server } from '../support/exports/s3/s3-server.js';
import type { Attempt } from './calling.js';

/** What provocations work with: a project that has one of everything. */
export type Owned = {
  app: App;
  owner: TestKey;
  known: Known;
  /** A token by whose trust rule nothing is left to exchange. */
  spentToken: string;
};

/** Makes the attempt, and says what is to be undone after it. */
export type Provocation = (owned: Owned) => Promise<Attempt & { undo?: () => Promise<void> }>;

/** Of a batch; other bodies are bounded to less. */
const MAX_BODY_BYTES = 3 * 1024 * 1024 + 8 * 1024;
const MAX_WEBHOOKS = 50;
const MAX_EXPORTS = 50;
/** One call, and then no more. */
const SPENT = { readsPerSecond: 1, perSecond: 1, perHour: 1, perDay: 1 };

/** Errors that nothing a client sends can bring about at will; other-errors.ts brings each about once. */
export const UNPROVOKED: readonly string[] = [
  'service.internal',
  'service.unavailable',
  'service.deadline_exceeded',
  'idempotency.in_progress',
];

const attempting =
  (change: Partial<Attempt>): Provocation =>
  async ({ owner, known }) => ({ apiKey: owner.key, known, ...change });

const nothing = attempting({ known: NOTHING });

export const PROVOCATIONS: Readonly<Record<string, Provocation>> = {
  'auth.missing_credentials': attempting({ apiKey: undefined }),
  'auth.invalid_key': attempting({ apiKey: 'nonsense' }),
  'auth.insufficient_scope': async ({ app, known }) => ({
    apiKey: (await newKey(app, { scopes: [] })).key,
    known,
  }),
  'rate_limit.exceeded': async ({ app, spentToken }) => ({
    apiKey: (await newKey(app, { limits: SPENT })).key,
    known: { ...NOTHING, token: spentToken },
  }),
  'request.malformed_json': attempting({ raw: { body: '{' } }),
  'request.invalid': attempting({ raw: { query: 'nothing-like-it=1' } }),
  'request.too_large': attempting({ raw: { body: 'x'.repeat(MAX_BODY_BYTES + 1) } }),
  'request.unsupported_media_type': attempting({
    raw: { body: '{}', headers: { 'content-type': 'text/plain' } },
  }),
  'request.precondition_failed': attempting({ raw: { headers: { 'if-match': '"another"' } } }),
  'cursor.invalid': attempting({ input: { cursor: 'cur_nonsense' } }),
  'idempotency.key_invalid': attempting({ headers: { 'idempotency-key': 'two words' } }),
  'idempotency.key_reused': async ({ app, owner, known }) => {
    const headers = { 'idempotency-key': randomBytes(8).toString('hex') };
    const body = { artifact: { sha256: randomBytes(32).toString('hex') }, metadata: METADATA };
    await app.rest('/v1/attestations', { apiKey: owner.key, headers, body });
    return { apiKey: owner.key, known, headers };
  },
  'token.not_trusted': nothing,
  'submission.not_found': nothing,
  'batch.not_found': nothing,
  'webhook.not_found': nothing,
  'export.not_found': nothing,
  'delivery.not_found': async ({ owner, known }) => ({
    apiKey: owner.key,
    known: { ...NOTHING, webhookId: known.webhookId },
  }),
  'bundle.not_ready': async ({ app, owner, known }) => {
    const undo = await app.holdSealing();
    const { id } = await submit(app, owner);
    return { apiKey: owner.key, known: { ...known, submissionId: id }, undo };
  },
  'submission.invalid_metadata': async ({ app, owner, known }) => ({
    apiKey: owner.key,
    known: { ...known, correctableId: await correctable(app, owner) },
    input: { metadata: INVALID },
  }),
  'submission.unknown_schema': async ({ app, owner, known }) => ({
    apiKey: owner.key,
    known: { ...known, correctableId: await correctable(app, owner) },
    input: { metadata: { schema: 'nothing-like-it' } },
  }),
  'submission.not_correctable': async ({ app, owner, known }) => {
    const { id } = await submit(app, owner);
    return { apiKey: owner.key, known: { ...known, correctableId: id } };
  },
  'submission.redacted': async ({ app, owner, known }) => {
    const { id } = await submit(app, owner);
    await app.rest(`/v1/attestations/${id}`, { method: 'DELETE', apiKey: owner.key });
    return { apiKey: owner.key, known: { ...known, correctableId: id } };
  },
  'submission.archived': async ({ app, owner, known }) => {
    const id = await archive(app, owner);
    return { apiKey: owner.key, known: { ...known, submissionId: id, correctableId: id, redactableId: id } };
  },
  'statement.no_predicate_type': attempting({
    input: { metadata: METADATA, statement: StatementForm.PUBLIC },
  }),
  'statement.public': async ({ app, owner, known }) => ({
    apiKey: owner.key,
    known: { ...known, correctableId: await makePublic(app, owner) },
  }),
  'statement.erased': async ({ app, owner, known }) => {
    const id = await makePublic(app, owner);
    await app.drain();
    await adminOf(app).ask(SubmissionService.method.eraseStatement, { id });
    return {
      apiKey: owner.key,
      known: { ...known, submissionId: id },
      input: { format: 'bundle.sigstore.json' },
    };
  },
  'webhook.invalid_url': attempting({ input: { url: 'ftp://hooks.example.com' } }),
  'webhook.limit_reached': async ({ app, known }) => {
    const other = await newKey(app);
    for (let made = 0; made < MAX_WEBHOOKS; made++) {
      const body = { url: 'http://127.0.0.1:9/hook', events: ['attestation.failed'] };
      await app.rest('/v1/webhooks', { apiKey: other.key, body });
    }
    return { apiKey: other.key, known };
  },
  'export.invalid_destination': async ({ app, owner, known }) => {
    const { url, close } = await startS3Server({ buckets: [BUCKET], keys: new Map() });
    const apiKey = owner.key;
    const { json } = await app.rest('/v1/exports', { apiKey, body: exportBody(known.storeUrl) });
    await app.rest(`/v1/exports/${String(json.id)}`, { apiKey, method: 'DELETE' });
    await close();
    return { apiKey, known: { ...known, storeUrl: url, exportId: String(json.id) } };
  },
  'export.limit_reached': async ({ app, known }) => {
    const other = await newKey(app);
    for (let made = 0; made < MAX_EXPORTS; made++) {
      await app.rest('/v1/exports', { apiKey: other.key, body: exportBody(known.storeUrl) });
    }
    return { apiKey: other.key, known };
  },
};

function exportBody(endpoint: string) {
  const { accessKeyId: access_key_id, secretAccessKey: secret_access_key } = OWNER;
  return { destination: { kind: 's3', bucket: BUCKET, endpoint, access_key_id, secret_access_key } };
}

/** A new submission with a public statement. */
async function makePublic(app: App, { key }: TestKey): Promise<string> {
  const artifact = { sha256: randomBytes(32).toString('hex') };
  const body = { artifact, metadata: SLSA, statement: 'public' };
  const { json } = await app.rest('/v1/attestations', { apiKey: key, body });
  return String(json.id);
}

/** A new submission whose metadata is invalid. */
async function correctable(app: App, { key }: TestKey): Promise<string> {
  const body = { ...invalidCreation(randomBytes(32).toString('hex')), validation: 'lenient' };
  const { json } = await app.rest('/v1/attestations', { apiKey: key, body });
  return String(json.id);
}

/** The entry of a submission that was removed from the tables. @returns its id */
async function archive(app: App, { projectId, environment }: TestKey): Promise<string> {
  const [log] = await app.pool<
    { id: number }[]
  >`SELECT id FROM log WHERE environment = ${environment} LIMIT 1`;
  if (log === undefined) throw new Error('there is no log');
  const id = `sub_${ulid()}`;
  const object = { place: 'a/live/2026/01/02/btc.jsonl.gz', sha256: randomBytes(32) };
  const treeSize = 1_000_000 + randomBytes(4).readUInt32BE();
  await insertArchivedObject(app.pool, { logId: log.id, treeSize }, [{ id, projectId }], object);
  return id;
}
