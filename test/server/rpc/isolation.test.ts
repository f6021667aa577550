import { randomBytes } from 'node:crypto';
import { getOption } from '@bufbuild/protobuf';
import t from 'tap';
import { rules, SessionAccess } from '../../../gen/attestation/options/v1/options_pb.js';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { ExportService } from '../../../gen/attestation/v1/exports_pb.js';
import { ScittService } from '../../../gen/attestation/v1/scitt_pb.js';
import { WebhookService } from '../../../gen/attestation/v1/webhooks_pb.js';
import { startApp } from '../../support/app.js';
import { keyedMethods, rpcName } from '../../support/calling/rpcs.js';
import { signedIn } from '../../support/calling/sessions.js';
import type { Outcome } from '../../support/calling/surfaces.js';
import { newKey, type TestKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import {
  buildCreation,
  creation,
  type Known,
  makeChangeable,
  makeExports,
  makeWebhooks,
  NOTHING,
  SAMPLED,
  sampleOf,
  sharedKey,
} from './samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const methods = await keyedMethods();
const [rest] = surfaces;
if (rest === undefined) throw new Error('there is no REST surface');
const { createAttestation, getAttestation } = AttestationService.method;
const { createWebhook } = WebhookService.method;
const { createExport } = ExportService.method;
const { registerStatement } = ScittService.method;

/** Every call of a method here is sent with it, so that one answered to somebody else would be replayed to them. */
const shared = ({ name }: { name: string }) => ({ 'idempotency-key': sharedKey(name) });
/** What is not the same twice: of a receipt the signature is made for each call. */
const NEVER_THE_SAME = ['GetMe', 'GetEntry'];
/** What says nothing of any project. */
const SAME_FOR_ALL = ['InfoService/GetHealth', 'InfoService/GetTrustRoots'];

/** One submission in a batch of its own. @returns what requests name, and what only its owner may ever read */
async function ownSomething(
  owner: TestKey,
  headers: (method: { name: string }) => Record<string, string> = () => ({}),
): Promise<{ known: Known; traces: string[] }> {
  const artifactSha256 = randomBytes(32).toString('hex');
  const created = await rest!.call(
    createAttestation,
    buildCreation(artifactSha256),
    owner.key,
    headers(createAttestation),
  );
  const { id = '', leafSha256, metadataSalt } = created.response as Record<string, string>;
  const changeable = await makeChangeable(rest!, owner.key);
  const entry = await rest!.call(registerStatement, sampleOf(registerStatement, NOTHING), owner.key);
  const webhooks = await makeWebhooks(rest!, owner.key, headers(createWebhook));
  const { storeUrl, ...exports } = await makeExports(t, rest!, owner.key, headers(createExport));
  await app.drain();
  const { response } = await rest!.call(getAttestation, { id }, owner.key);
  const batchId = String(response.batchId);
  return {
    known: {
      ...NOTHING,
      artifactSha256,
      submissionId: id,
      batchId,
      ...changeable,
      ...webhooks,
      ...exports,
      storeUrl,
    },
    traces: [
      id,
      entry.headers.location?.replace('/entries/', ''),
      batchId,
      leafSha256,
      metadataSalt,
      owner.projectId,
      owner.id,
      ...Object.values(changeable),
      ...Object.values(webhooks),
      ...Object.values(exports),
    ].map(String),
  };
}

function textOf({ response, message, details, headers }: Outcome): string {
  const { data } = response;
  const file = typeof data === 'string' ? Buffer.from(data, 'base64').toString() : '';
  return JSON.stringify({ response, message, details, headers }) + file;
}

function told({ code, message, details, status, grpcCode }: Outcome) {
  return { code, message, details, status, grpcCode };
}

/** Asserts that no RPC tells a session of `stranger` anything of what `owner` has. */
async function assertUnseenBySessions(
  t: Tap,
  owner: TestKey,
  stranger: TestKey,
  known: Known,
  traces: string[],
) {
  const isOtherProject = owner.projectId.startsWith('prj_');
  const mine = await signedIn(app, isOtherProject ? owner : { ...owner, projectId: stranger.projectId });
  const theirs = await signedIn(app, stranger);
  const isReading = ({ name }: { name: string }) => /^(?:Get|List|Download)/.test(name);
  for (const method of methods.filter((one) => getOption(one, rules).session !== SessionAccess.UNSPECIFIED)) {
    const what = `${rpcName(method)} by a session`;
    const { code, message, response } = await theirs.call(method, sampleOf(method, known));
    const text = JSON.stringify([message, response]);
    t.same(
      traces.filter((trace) => text.includes(trace)),
      [],
      `${what} shows nothing of another's`,
    );
    const nothing = await theirs.call(method, sampleOf(method, { ...NOTHING, storeUrl: known.storeUrl }));
    if (nothing.code !== 'ok')
      t.same([code, message], [nothing.code, nothing.message], `${what} is as if it never was`);
    if (isReading(method))
      t.equal((await mine.call(method, sampleOf(method, known))).code, 'ok', `${what} answers`);
  }
}

/** Asserts that no RPC, on any surface, tells `stranger` anything of what `owner` has. */
async function assertUnseen(t: Tap, owner: TestKey, stranger: TestKey): Promise<void> {
  const { known, traces } = await ownSomething(owner, shared);
  await ownSomething(stranger);
  const isOfKey = (name: string) => name !== 'TokenService/ExchangeToken';
  t.same(methods.map(rpcName).sort(), SAMPLED.filter(isOfKey).sort(), 'every RPC is gone through');
  const seen = (outcome: Outcome) => traces.filter((trace) => textOf(outcome).includes(trace));
  for (const method of methods) {
    const what = rpcName(method);
    for (const { name, call } of surfaces) {
      const outcome = await call(method, sampleOf(method, known), stranger.key, shared(method));
      t.same(seen(outcome), [], `${what} by ${name} shows nothing of another's`);
      const nothing = await call(
        method,
        sampleOf(method, { ...NOTHING, storeUrl: known.storeUrl }),
        stranger.key,
      );
      if (nothing.code !== 'ok') {
        t.same(told(outcome), told(nothing), `${what} by ${name} is as if it never was`);
        t.match(nothing.code, /\.not_found$/);
      }
      const own = await call(method, sampleOf(method, known), owner.key, shared(method));
      t.equal(own.code, 'ok', `${what} by ${name} answers its owner`);
      t.equal(seen(own).length > 0, !SAME_FOR_ALL.includes(what), `${what} by ${name} shows its owner's`);
    }
  }
  await assertUnseenBySessions(t, owner, stranger, known, traces);
}
type Tap = Pick<typeof t, 'same' | 'equal' | 'match'>;

t.test('TWO PROJECTS CANNOT SEE EACH OTHER ON ANY RPC', async (t) => {
  const [one, two] = [await newKey(app), await newKey(app)];
  await assertUnseen(t, one, two);
});

t.test('live and test of one project cannot see each other on any RPC', async (t) => {
  for (const [owner, stranger] of [
    [Environment.LIVE, Environment.TEST],
    [Environment.TEST, Environment.LIVE],
  ] as const) {
    const one = await newKey(app, { environment: owner });
    const other = await newKey(app, { environment: stranger, projectId: one.projectId });
    await assertUnseen(t, { ...one, projectId: 'is theirs both' }, other);
  }
});

t.test('two keys of one project and environment see the same', async (t) => {
  const one = await newKey(app);
  const two = await newKey(app, { projectId: one.projectId });
  const { known } = await ownSomething(one);
  for (const method of methods.filter(
    ({ name }) => /^(?:Get|List|Download)/.test(name) && !NEVER_THE_SAME.includes(name),
  )) {
    const [first, second] = await Promise.all(
      [one, two].map(({ key }) => rest.call(method, sampleOf(method, known), key)),
    );
    t.equal(first?.code, 'ok');
    t.same(first?.response, second?.response, rpcName(method));
  }
});

t.test(
  'a batch is seen by every project that has a submission in it, and shows each only its own',
  async (t) => {
    const [one, two] = [await newKey(app), await newKey(app)];
    const [self] = app.witnesses;
    self?.hold();
    const created = await Promise.all(
      [one, two].map(({ key }) => rest.call(createAttestation, creation('d'.repeat(64)), key)),
    );
    self?.release();
    await app.drain();
    for (const [i, { key }] of [one, two].entries()) {
      const list = await app.rest('/v1/batches', { apiKey: key });
      const batches = list.json.data as { id: string; leaf_count: number }[];
      t.equal(batches.length, 1);
      const mine = await app.rest('/v1/attestations', { apiKey: key });
      t.same(
        (mine.json.data as { id: string; batch_id: string }[]).map(({ id, batch_id }) => ({ id, batch_id })),
        [{ id: created[i]?.response.id, batch_id: batches[0]?.id }],
      );
    }
  },
);

t.test('nothing secret was logged, or answered to strangers', async (t) => {
  assertNoLeaks(t, app.recorder);
});
