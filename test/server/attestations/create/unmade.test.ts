/** Creations that make nothing, because they are refused or were made before, and changes: what they count as. */
import { once } from 'node:events';
import { connect } from 'node:net';
import t from 'tap';
import { Bucket } from '../../../../gen/attestation/options/v1/options_pb.js';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { InfoService } from '../../../../gen/attestation/v1/service_pb.js';
import type { Principal } from '../../../../src/server/core/principal.js';
import type { Pool } from '../../../../src/server/database/connect.js';
import { methodRules } from '../../../../src/server/http/services.js';
import { createReadLimits } from '../../../../src/server/limits/read-limits.js';
import { startApp } from '../../../support/app.js';
import { publicMethods, rpcName } from '../../../support/calling/rpcs.js';
import type { Outcome } from '../../../support/calling/surfaces.js';
import { newKey, type TestKey } from '../../../support/calling/test-keys.js';
import { withinOneHour } from '../../../support/fixed-clock.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { until } from '../../../support/until.js';
import {
  creation,
  invalidCreation,
  type Known,
  makeChangeable,
  makeExports,
  makeWebhooks,
  NOTHING,
  sampleOf,
} from '../../rpc/samples.js';

const app = await startApp(t, { apis: 2 });
const surfaces = app.surfaces();
/** Every surface of every process. */
const everywhere = app.baseUrls.flatMap((baseUrl) => app.surfaces(baseUrl));
const { createAttestation, getAttestation } = AttestationService.method;
const { getMe } = InfoService.method;
const ARTIFACT = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);
const PRINCIPAL: Omit<Principal, 'id'> = {
  projectId: 'prj_x',
  environment: Environment.TEST,
  scopes: [],
  submissionWindows: [],
  readWindow: { windowSeconds: 1, limit: 600 },
};
const TWELVE = Array.from({ length: 12 }, (_, i) => i);

async function readsOf({ id }: TestKey): Promise<number> {
  const [row] = await app.pool<{ n: number }[]>`
    SELECT coalesce(sum(n_second), 0)::int AS n FROM rate_counter
    WHERE api_key_id = ${id} AND bucket = ${Bucket.READS}`;
  return row?.n ?? 0;
}

const isOfReads = ({ code, details }: Outcome) =>
  code === 'rate_limit.exceeded' && details.bucket === 'reads';

/** Sends until one of many at once finds the reads of its second used up. */
function untilReadsAreSpent(what: string, send: (at: number) => Promise<Outcome>): Promise<Outcome> {
  return until(what, async () => {
    const outcomes = await Promise.all(TWELVE.map(send));
    return outcomes.find(isOfReads);
  });
}

/** Ways to be refused, with the code. */
const REFUSED = [
  ['request.invalid', creation('x')],
  ['submission.invalid_metadata', creation(ARTIFACT, { schema: 'purl' })],
  ['submission.unknown_schema', creation(ARTIFACT, { schema: 'none' })],
] as const;

t.test('a rejected creation counts as a read, and beyond the reads of a second there is 429', async (t) => {
  for (const { name, call } of surfaces) {
    const few = await newKey(app, { limits: { readsPerSecond: 3 } });
    for (const [code, message] of REFUSED) {
      const what = `${code} by ${name}`;
      // A lease that expires before it arrives is requested again, and counts twice.
      await until(`${what} is counted as one`, async () => {
        const one = await newKey(app);
        t.equal((await call(createAttestation, message, one.key)).code, code, what);
        await until(`${what} is counted`, async () => (await readsOf(one)) > 0);
        return (await readsOf(one)) === 1;
      });
    }
    const refused = await untilReadsAreSpent(name, (at) =>
      call(createAttestation, REFUSED[at % REFUSED.length]![1], few.key),
    );
    t.match(refused.details, { bucket: 'reads', window: 1, limit: 3 }, name);
    t.match(refused.headers, { 'retry-after': '1', 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': '0' });
  }
});

t.test('however many are rejected at once, they are counted before as many more are', async (t) => {
  const key = await newKey(app);
  let statements = 0;
  const counted = ((...query: Parameters<Pool>) => {
    statements++;
    return app.pool(...query);
  }) as Pool;
  const limits = createReadLimits(counted);
  const principal = { ...PRINCIPAL, id: key.id };
  for (let i = 0; i < 500; i++) limits.charge(principal, 1);
  await until('all are counted', async () => (await readsOf(key)) >= 500);
  t.ok(statements <= 5, `by ${statements} statements`);
  await until('more than a second has room for', async () => {
    for (let i = 0; i < 1_500; i++) limits.charge(principal, 1);
    return limits.findOverdrawn(principal) !== undefined;
  });
});

t.test('reads leased at the end of a window are used though it is over when they arrive', async (t) => {
  const key = await newKey(app);
  let nowMs = 0;
  const limits = createReadLimits(app.pool, { monotonicMs: () => (nowMs += 2_000) });
  await limits.take({ ...PRINCIPAL, id: key.id }, 10);
  t.equal(await readsOf(key), 10);
});

const NOTE = 'x'.repeat(60_000);
const INVALID = { schema: 'purl', note: NOTE };
const LARGE = { ok: invalidCreation(ARTIFACT, INVALID), refused: creation(OTHER, INVALID) };

t.test(
  'a rejected creation counts as a read for each KiB of its body, a replayed one as one read',
  async (t) => {
    for (const { name, call } of surfaces) {
      const key = await newKey(app);
      const { code } = await call(createAttestation, LARGE.refused, key.key);
      t.equal(code, 'submission.invalid_metadata', name);
      await until(`${name}: all of it is counted`, async () => (await readsOf(key)) >= 58);
      const other = await newKey(app, { limits: { perDay: 1 } });
      const send = (message: (typeof LARGE)[keyof typeof LARGE]) =>
        call(createAttestation, message, other.key, { 'idempotency-key': 'large' });
      t.equal((await send(LARGE.ok)).code, 'ok');
      t.equal(await readsOf(other), 0, name);
      t.equal((await send(LARGE.ok)).code, 'ok');
      await until('it is counted', async () => (await readsOf(other)) > 0);
      t.ok((await readsOf(other)) < 58, `${name}: replayed`);
      t.equal((await send(LARGE.refused)).code, 'idempotency.key_reused');
      await until(`${name}: refused under a known key`, async () => (await readsOf(other)) >= 59);
    }
  },
);

t.test('requests that never become a message, or are aborted, count as well', async (t) => {
  const key = await newKey(app);
  await app.rest('/v1/attestations', { apiKey: key.key, body: '{' });
  await until('a malformed body is counted', async () => (await readsOf(key)) === 1);
  await app.rest('/v1/attestations', { apiKey: key.key, body: `{${' '.repeat(60_000)}` });
  await until('a longer one as more', async () => (await readsOf(key)) >= 59);
  const { port } = new URL(app.baseUrl);
  const socket = connect(Number(port), '127.0.0.1');
  socket.write(
    `POST /v1/attestations HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key.key}\r\n` +
      'content-type: application/json\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n',
  );
  t.match(String((await once(socket, 'data'))[0]), /^HTTP\/1.1 100 /);
  socket.destroy();
  await until('a body that never came is counted', async () => (await readsOf(key)) > 1);
});

t.test('creations do not count as reads, and exhausted reads do not block creations', async (t) => {
  const key = await newKey(app, { limits: { readsPerSecond: 2 } });
  for (const { call } of everywhere) {
    await untilReadsAreSpent('reads are used up', () => call(getMe, {}, key.key));
    const before = await readsOf(key);
    const outcomes = await Promise.all(
      TWELVE.map(() => call(createAttestation, creation(ARTIFACT), key.key)),
    );
    t.same(new Set(outcomes.map(({ code }) => code)), new Set(['ok']));
    t.equal(await readsOf(key), before);
  }
});

for (const window of ['perSecond', 'perHour', 'perDay'] as const) {
  t.test(`replays are returned while ${window} is exhausted, and other creations rejected`, async (t) => {
    const seen = await withinOneHour(async () => {
      const key = await newKey(app, { limits: { [window]: 1 } });
      const send = (at: number, artifact = ARTIFACT, idempotencyKey?: string) =>
        everywhere[at % everywhere.length]!.call(
          createAttestation,
          creation(artifact),
          key.key,
          idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
        );
      const first = await send(0, ARTIFACT, 'made-before');
      t.equal(first.code, 'ok');
      const again: Outcome[] = [];
      const others: string[][] = [];
      for (const at of everywhere.keys()) {
        await until(
          'the window is used up',
          async () => (await send(at, OTHER)).code === 'rate_limit.exceeded',
        );
        again.push(await send(at, ARTIFACT, 'made-before'));
        if (window === 'perSecond') continue;
        others.push([
          (await send(at, OTHER, 'made-before')).code,
          (await send(at, ARTIFACT, 'never-seen')).code,
          (await send(at, ARTIFACT, 'x'.repeat(256))).code,
          (await send(at)).code,
        ]);
      }
      return { first, again, others };
    });
    for (const [at, outcome] of seen.again.entries()) {
      const { name } = everywhere[at]!;
      t.equal(outcome.code, 'ok', name);
      t.equal(outcome.response.id, seen.first.response.id, name);
      t.equal(outcome.headers['idempotent-replayed'], 'true', name);
      t.equal(outcome.status, name === 'REST' ? 201 : 0, name);
    }
    const limited = 'rate_limit.exceeded';
    for (const codes of seen.others) t.same(codes, ['idempotency.key_reused', limited, limited, limited]);
  });
}

t.test('a replay counts as a read, whether the creation window is exhausted or not', async (t) => {
  for (const perDay of [1, 1_000]) {
    await withinOneHour(async () => {
      const key = await newKey(app, { limits: { perDay, readsPerSecond: 4 } });
      for (const { name, call } of surfaces) {
        const again = () =>
          call(createAttestation, creation(ARTIFACT), key.key, { 'idempotency-key': 'one-for-all' });
        const what = `${perDay} a day, by ${name}`;
        const spent = await untilReadsAreSpent(what, again);
        t.match(spent.details, { limit: 4, window: 1 }, what);
        await until(what, async () => (await again()).code === 'ok');
      }
    });
  }
});

/** The methods that change something, save creating submissions. */
const changes = (await publicMethods()).filter((method) => {
  const { idempotentByKey, bucket } = methodRules(method);
  return idempotentByKey && bucket === Bucket.READS;
});

t.test('a change counts as ten reads, on every surface', async (t) => {
  t.ok(changes.length >= 9);
  for (const surface of surfaces) {
    const other = await newKey(app);
    const { projectId } = other;
    const known: Known = {
      ...NOTHING,
      ...(await makeChangeable(surface, other.key)),
      ...(await makeWebhooks(surface, other.key)),
      ...(await makeExports(t, surface, other.key)),
    };
    for (const method of changes) {
      const what = `${rpcName(method)} by ${surface.name}`;
      // The whole of a second's reads.
      const key = await newKey(app, { projectId, limits: { readsPerSecond: 10 } });
      t.equal((await surface.call(method, sampleOf(method, known), key.key)).code, 'ok', what);
      t.equal(await readsOf(key), 10, what);
    }
    const one = await newKey(app, { projectId, limits: { readsPerSecond: 3 } });
    const { code } = await surface.call(getAttestation, { id: known.redactableId }, one.key);
    t.equal(code, 'ok', 'and a read as one');
    t.equal(await readsOf(one), 1);
  }
});

t.test('a rejected change counts as a read for each KiB of its body, and as ten at least', async (t) => {
  for (const surface of surfaces) {
    const { key, projectId } = await newKey(app);
    const { correctableId: id } = await makeChangeable(surface, key);
    for (const [note, reads] of [
      [NOTE, 59],
      ['x', 10],
    ] as const) {
      const one = await newKey(app, { projectId });
      const { code } = await surface.call(
        AttestationService.method.updateAttestation,
        { id, metadata: { schema: 'purl', note } },
        one.key,
      );
      t.equal(code, 'submission.invalid_metadata', surface.name);
      await until(`${surface.name}: all of it is counted`, async () => (await readsOf(one)) >= reads);
      t.ok((await readsOf(one)) < reads + 2, surface.name);
    }
  }
});

t.test('a key with fewer reads than that can change something all the same', async (t) => {
  const key = await newKey(app, { limits: { readsPerSecond: 3 } });
  const other = await newKey(app, { projectId: key.projectId });
  const { webhookId } = await makeWebhooks(surfaces[0]!, other.key);
  const update = changes.find(({ name }) => name === 'UpdateWebhook')!;
  const { code } = await surfaces[0]!.call(update, sampleOf(update, { ...NOTHING, webhookId }), key.key);
  t.equal(code, 'ok');
  t.equal(await readsOf(key), 3);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
