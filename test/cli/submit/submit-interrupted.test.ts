/** Ctrl-C during `attest submit`: what is recorded is printed, and nothing further is submitted. */
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  AttestationService,
  type BatchItem,
  ItemOutcome,
  SubmissionStatus,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { serveRpc } from '../../support/servers/rpc-server.js';
import { until } from '../../support/until.js';
import { startAttest } from './attest-process.js';
import { files, KEYS } from './submitting.js';

type Answer = (item: BatchItem, place: number) => object;

/** A service that answers calls when it is told to. */
async function serveHeld(t: Test, answer: Answer) {
  const held: (() => void)[] = [];
  const { baseUrl, requests } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      batchCreateAttestations: async ({ items }) => {
        await new Promise<void>((resolve) => held.push(resolve));
        return { results: items.map(answer) };
      },
      getAttestation: ({ id }) => ({ id, status: SubmissionStatus.QUEUED }),
    });
  });
  return { held, requests, env: { ATTEST_URL: baseUrl, ATTEST_API_KEY: KEYS.test } };
}

const created: Answer = (_, place) => ({
  outcome: ItemOutcome.CREATED,
  submission: { id: `sub_${place}`, status: SubmissionStatus.QUEUED },
});
const limited: Answer = () => ({
  outcome: ItemOutcome.FAILED,
  retryAfter: 50,
  error: { code: 'rate_limit.exceeded', message: 'too many', requestId: 'req_1' },
});

/** Starts `attest submit`; `says` waits for something on standard error. */
function submit(t: Test, args: readonly string[], env: Record<string, string>) {
  const { child, ended } = startAttest(t, ['submit', ...args], { cwd: '.', env });
  let said = '';
  child.stderr.on('data', (piece: string) => {
    said += piece;
  });
  return { child, ended, says: (what: RegExp) => until(`${what} is said`, () => what.test(said)) };
}

t.test('between two calls the submissions of the first are printed', async (t) => {
  const service = await serveHeld(t, (item, place) => (place === 0 ? created : limited)(item, place));
  const { paths } = files(t);
  const { child, ended, says } = submit(t, paths, service.env);
  await until('it calls', () => service.held.length === 1);
  service.held[0]?.();
  await says(/retrying in/);
  child.kill('SIGINT');
  const { code, stdout, stderr } = await ended;
  t.equal(stdout, `sub_0  queued  ${paths[0]}\n`);
  t.match(stderr, /\ninterrupted: 1 of 3 files were submitted\nto continue: .* submit … --resume run-\w+\n$/);
  t.notMatch(stderr, /^error/m);
  t.equal(code, 130);
  t.equal(service.requests.length, 1);
});

t.test('the call under way has half a second more, unless the signal is repeated', async (t) => {
  const { paths } = files(t);
  for (const kind of ['answered', 'held', 'repeated'] as const) {
    const service = await serveHeld(t, created);
    const { child, ended, says } = submit(t, paths, service.env);
    await until('it calls', () => service.held.length === 1);
    const since = performance.now();
    child.kill('SIGINT');
    await says(/stopping; repeat to exit at once/);
    if (kind === 'repeated') child.kill('SIGINT');
    if (kind === 'answered') service.held[0]?.();
    const { code, stdout } = await ended;
    const ms = performance.now() - since;
    service.held[0]?.();
    t.equal(code, 130);
    t.same(stdout.match(/^sub_\d/gm) ?? [], kind === 'answered' ? ['sub_0', 'sub_1', 'sub_2'] : [], kind);
    t.ok(ms < 5_000, `${kind}: ${ms} ms`);
  }
});

t.test('a wait for witnesses is given up, with the submissions printed as they are', async (t) => {
  const service = await serveHeld(t, created);
  const { paths } = files(t);
  const { child, ended } = submit(t, [...paths, '--wait'], service.env);
  await until('it calls', () => service.held.length === 1);
  service.held[0]?.();
  await until('it waits', () => service.requests.length > 3);
  child.kill('SIGTERM');
  const { code, stdout, stderr } = await ended;
  t.same(stdout.match(/^sub_\d {2}queued/gm), ['sub_0  queued', 'sub_1  queued', 'sub_2  queued']);
  t.match(stderr, /interrupted: 3 of 3 files were submitted\nto continue: .*\n$/);
  t.equal(code, 143);
});

t.test(
  'in the middle of a large file, and of standard input that does not end, it ends at once',
  async (t) => {
    const { dir, paths } = files(t);
    const large = join(dir, 'large');
    writeFileSync(large, '');
    // Sparse; hashing it takes minutes.
    truncateSync(large, 200 * 1024 ** 3);
    for (const last of [large, '-']) {
      const service = await serveHeld(t, created);
      const { child, ended } = submit(t, [...paths, last], service.env);
      await until('it calls', () => service.held.length === 1);
      service.held[0]?.();
      const since = performance.now();
      child.kill('SIGTERM');
      const { code, stdout, stderr } = await ended;
      t.equal(code, 143);
      t.same(stdout.match(/^sub_\d/gm), ['sub_0', 'sub_1', 'sub_2'], 'what was recorded is printed');
      t.match(stderr, /interrupted: 3 of 4 files were submitted/);
      t.ok(performance.now() - since < 5_000);
    }
  },
);

t.test('an error of the batch is that of each file in it, and costs no poll of its own', async (t) => {
  const treeSize = 3n;
  const bundle = { batch: { id: 'btc_1', rootHash: '', firstIndex: 0n, treeSize } };
  let polls = 0;
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      batchCreateAttestations: ({ items }) => ({
        results: items.map((_, place) => ({
          outcome: ItemOutcome.CREATED,
          submission: { id: `sub_${place}`, status: SubmissionStatus.QUEUED, logIndex: BigInt(place) },
        })),
      }),
      getAttestation: ({ id }) => {
        polls++;
        return { id, status: SubmissionStatus.PARTIAL, bundle };
      },
    });
  });
  const { paths } = files(t);
  const env = { ATTEST_URL: baseUrl, ATTEST_API_KEY: KEYS.test };
  const { ended } = submit(t, [...paths, '--wait'], env);
  const { code, stdout, stderr } = await ended;
  t.equal(code, 1);
  t.same(stdout.match(/^sub_\d/gm), ['sub_0', 'sub_1', 'sub_2']);
  for (const i of [0, 1, 2]) t.match(stderr, new RegExp(`sub_${i} is not witnessed: .*\\(wait\\.partial\\)`));
  t.equal(polls, 1);
});
