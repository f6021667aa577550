import t, { type Test } from 'tap';
import { makeWitnessDue } from '../../src/server/witnessing/store/witness-leases.js';
import { type Known, makeChangeable, makeExports, makeWebhooks } from '../server/rpc/samples.js';
import { submitWitnessed } from '../server/rpc/submitting.js';
import { startApp } from '../support/app.js';
import type { RestAnswer } from '../support/calling/rpc-clients.js';
import { bodyOf, type RestRequest, restRequest } from '../support/calling/rpcs.js';
import { newKey, type TestKey } from '../support/calling/test-keys.js';
import { trustedToken } from '../support/identities/trusted-token.js';
import { type Contract, openContract } from '../support/judging/contract.js';
import { assertEnvelope, assertStatus, CATALOGUE } from '../support/judging/envelope.js';
import { assertNoLeaks } from '../support/judging/recorder.js';
import { isLong } from '../support/long.js';
import { until } from '../support/until.js';
import { startCalendar } from '../support/witnesses/opentimestamps/calendar.js';
import {
  type Attempt,
  type Callable,
  callables,
  codeOf,
  describedRoutes,
  messageOf,
  routeOf,
  send,
} from './calling.js';
import { omissions, onlyRequired } from './omitting.js';
import { OTHER_ERRORS } from './other-errors.js';
import { type Owned, PROVOCATIONS, UNPROVOKED } from './provocations.js';

const calendar = await startCalendar(t);
const calendars = { name: 'bitcoin', kind: 'opentimestamps', calendars: [calendar.url], every: '1s' };
const app = await startApp(t, { isProxied: true, env: { WITNESSES: JSON.stringify([calendars]) } });
const { json: document } = await app.rest('/openapi.json');
const contract: Contract = openContract(document);
const all = await callables(contract.operations);
const owner = await newKey(app);
const owned: Owned = {
  app,
  owner,
  known: await ownEverything(owner),
  spentToken: await trustedToken(t, app, owner.projectId, { readsPerSecond: 0n }),
};
/** The codes of all errors that were answered with so far. */
const provoked = new Set<string>();
/** Attempts until a rate window is exhausted. */
const MAX_ATTEMPTS = 50;

/** What each of its operations changes or deletes is there again. */
async function ownAnew(): Promise<Known> {
  const [rest] = app.surfaces();
  if (rest === undefined) throw new Error('there is no REST surface');
  const [changeable, webhooks] = [await makeChangeable(rest, owner.key), await makeWebhooks(rest, owner.key)];
  return { ...owned.known, ...changeable, ...webhooks, ...(await makeExports(t, rest, owner.key)) };
}

/** The request of the sample, and what it is answered with when it is sent otherwise. */
function sampled(callable: Callable, known: Known) {
  const request = restRequest(callable.method, messageOf(callable, { apiKey: owner.key, known }));
  const send = async (sent: RestRequest) =>
    app.rest(sent.path, { method: sent.method, apiKey: owner.key, ...bodyOf(sent) });
  return { request, send };
}

async function ownEverything({ key }: TestKey): Promise<Known> {
  const [rest] = app.surfaces();
  if (rest === undefined) throw new Error('there is no REST surface');
  const { id, artifactSha256 } = await submitWitnessed(app, owner);
  const { json } = await app.rest(`/v1/attestations/${id}`, { apiKey: key });
  await untilInBlock(id, key);
  const changeable = await makeChangeable(rest, key);
  const webhooks = await makeWebhooks(rest, key);
  const exports = await makeExports(t, rest, key);
  return {
    artifactSha256,
    submissionId: id,
    batchId: String(json.batch_id),
    ...changeable,
    ...webhooks,
    ...exports,
    token: await trustedToken(t, app, owner.projectId),
  };
}

/** Puts the submission's checkpoint into a Bitcoin block. The API caches for seconds what a batch's bundles share. */
async function untilInBlock(id: string, apiKey: string): Promise<void> {
  let height = 850_000;
  await until('the .ots file is there', async () => {
    calendar.mine(height++);
    await makeWitnessDue(app.pool, 'bitcoin');
    await app.drain();
    return (await app.rest(`/v1/attestations/${id}/bundle.ots`, { apiKey })).status === 200;
  });
}

/** Sends an attempt and holds request and answer against the document. */
async function exchange(t: Test, callable: Callable, attempt: Attempt): Promise<RestAnswer> {
  const answer = await send(app, callable, attempt);
  const { operation } = callable;
  t.strictSame(contract.findProblems(operation, answer), [], `${operation.id}: the answer ${answer.status}`);
  if (answer.status >= 400) {
    assertEnvelope(t, codeOf(answer), answer);
    provoked.add(codeOf(answer));
  }
  return answer;
}

t.test('the document has the routes that the protos describe, and no others', async (t) => {
  const documented = contract.operations.map(({ method, path }) => routeOf(method, path));
  t.strictSame(documented.sort(), (await describedRoutes()).sort());
});

t.test('every operation accepts its documented request and returns its documented response', async (t) => {
  for (const callable of all) {
    const { operation } = callable;
    const attempt = { apiKey: owner.key, known: owned.known, headers: { 'idempotency-key': operation.id } };
    const { body, raw } = restRequest(callable.method, messageOf(callable, attempt));
    const sent = raw === undefined ? (body ?? {}) : Buffer.from(raw.data).toString('latin1');
    const misfits = operation.body && contract.findMisfits(operation.body.schema, sent);
    t.strictSame(misfits ?? [], [], `${operation.id}: the request`);
    const answer = await exchange(t, callable, attempt);
    t.equal(codeOf(answer), 'ok', `${operation.id}: ${answer.body}`);
    const replay = await exchange(t, callable, attempt);
    const documentsReplay = operation.answers.get(answer.status)?.headers.has('idempotent-replayed') ?? false;
    t.equal(replay.headers['idempotent-replayed'], documentsReplay ? 'true' : undefined, operation.id);
    t.equal(replay.status, answer.status);
  }
});

t.test('what the document calls optional can be left out, all of it at once', async (t) => {
  const known = await ownAnew();
  for (const callable of all) {
    const { operation } = callable;
    const { request, send } = sampled(callable, known);
    const least = onlyRequired(contract, operation, request);
    const answer = await send(least);
    t.strictSame(contract.findProblems(operation, answer), [], operation.id);
    t.equal(codeOf(answer), 'ok', `${operation.id} of ${JSON.stringify(least)}: ${answer.body}`);
  }
});

t.test('what the document calls required cannot be left out, each by itself', async (t) => {
  const known = await ownAnew();
  for (const callable of all) {
    const { operation } = callable;
    const { request, send } = sampled(callable, known);
    for (const { what, request: without } of omissions(contract, operation, request)) {
      const answer = await send(without);
      // An item of a batch is refused in its own result.
      const [result] = (answer.json.results ?? []) as { error?: { code: string } }[];
      const code = result?.error?.code ?? codeOf(answer);
      t.equal(code, 'request.invalid', `${operation.id} without ${what}: ${answer.body}`);
    }
  }
});

t.test('an operation with entity tags answers 304 as documented, and only such do', async (t) => {
  for (const callable of all) {
    const { operation } = callable;
    if (operation.method !== 'GET') continue;
    const attempt = { apiKey: owner.key, known: owned.known, headers: { 'if-none-match': '*' } };
    const { status } = await exchange(t, callable, attempt);
    t.equal(status === 304, operation.answers.has(304), operation.id);
  }
});

t.test('every error that an operation documents is one it answers with, as documented', async (t) => {
  for (const callable of all) {
    const { operation } = callable;
    for (const code of [...operation.answers.values()].flatMap(({ codes }) => codes)) {
      if (UNPROVOKED.includes(code)) continue;
      const provoke = PROVOCATIONS[code];
      if (provoke === undefined) {
        t.fail(`test/openapi/provocations.ts has nothing that provokes ${code} of ${operation.id}`);
        continue;
      }
      const attempt = await provoke(owned);
      let answer = await exchange(t, callable, attempt);
      const isWanted = () => codeOf(answer) === code;
      for (let i = 0; code === 'rate_limit.exceeded' && !isWanted() && i < MAX_ATTEMPTS; i++) {
        answer = await exchange(t, callable, attempt);
      }
      await attempt.undo?.();
      t.equal(codeOf(answer), code, `${operation.id}: ${answer.body}`);
    }
  }
});

t.test('the same rejections have the gRPC status of the catalogue', async (t) => {
  const surfaces = app.surfaces().filter(({ name }) => name !== 'REST');
  const tried = new Set<string>();
  for (const callable of all) {
    const { operation, method } = callable;
    for (const code of [...operation.answers.values()].flatMap((answer) => answer.codes)) {
      if (UNPROVOKED.includes(code) || code === 'rate_limit.exceeded') continue;
      // Of each operation in a long run, once in others.
      if (!isLong && tried.has(code)) continue;
      tried.add(code);
      const attempt = await PROVOCATIONS[code]?.(owned);
      if (attempt !== undefined && attempt.raw === undefined) {
        for (const { name, call } of surfaces) {
          const message = messageOf(callable, attempt);
          const outcome = await call(method, message, attempt.apiKey, attempt.headers);
          assertStatus(t, code, `${operation.id} by ${name}`, outcome);
        }
      }
      await attempt?.undo?.();
    }
  }
});

t.test('while the database is unavailable every operation answers 503 as documented', async (t) => {
  app.databaseProxy?.setOpen(false);
  app.databaseProxy?.cut();
  const { key } = owner;
  const answers = await Promise.all(
    all.map(async (callable) => exchange(t, callable, { apiKey: key, known: owned.known })),
  );
  for (const answer of answers) t.ok(['ok', 'service.unavailable'].includes(codeOf(answer)), codeOf(answer));
  t.ok(answers.filter(({ status }) => status === 503).length > all.length / 2, 'most need the database');
  app.databaseProxy?.setOpen(true);
});

t.test(
  'every error of the catalogue was provoked, with its documented status, envelope and headers',
  async (t) => {
    for (const [code, provoke] of Object.entries(OTHER_ERRORS)) {
      const { rest, outcomes } = await provoke(t, app);
      for (const answer of rest) assertEnvelope(t, code, answer);
      for (const { name, outcome } of outcomes) assertStatus(t, code, name, outcome);
      if (rest.length + outcomes.length > 0) provoked.add(code);
    }
    const isServed = all.some(({ method }) => method.parent.name === 'ExportService');
    const missing = [...CATALOGUE.keys()].filter((code) => !provoked.has(code));
    t.strictSame(missing, isServed ? [] : ['export.not_found', 'export.invalid_destination']);
  },
);

t.test('there was no internal error, and no secret in a response', async (t) =>
  assertNoLeaks(t, app.recorder, true),
);
