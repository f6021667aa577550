/** Witnesses that accept a request and fulfil it later. */
import t, { type Test } from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { fromUtf8, utf8 } from '../../../src/proof/bytes/encoding.js';
import { witnessJob } from '../../../src/server/jobs/job.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import type {
  PendingRequest,
  PollAnswer,
  WitnessAnswer,
} from '../../../src/server/witnessing/clients/witness.js';
import { makeWitnessDue } from '../../../src/server/witnessing/store/witness-leases.js';
import { leaseDueRequest, listRequests } from '../../../src/server/witnessing/store/witness-requests.js';
import { listWitnessStates } from '../../../src/server/witnessing/store/witnesses.js';
import { letPass } from '../../support/breaking/database-clock.js';
import { statuses } from '../../support/judging/batch-states.js';
import { drain, openPipeline, type TestWitness } from '../../support/pipeline.js';

const MINUTE_MS = 60_000;
const { SEALED, WITNESSED } = BatchStatus;

type SlowWitness = TestWitness & {
  /** The sizes that it was asked for, and those that were polled with their state. */
  sizes: number[];
  polled: string[];
  poll: (request: PendingRequest) => Promise<PollAnswer>;
};

/** A witness that accepts every request, and continues as `poll` says. */
function slowWitness(
  options: { oneAtATime?: true; environments?: number[]; everyMs?: number } = {},
): SlowWitness {
  const witness: SlowWitness = {
    name: 'slow',
    manner: () => Promise.reject(new Error('not used')),
    asked: 0,
    sizes: [],
    polled: [],
    poll: async () => pending('accepted'),
    setup: {
      witness: {
        name: 'slow',
        kind: 'opentimestamps',
        ask: async ({ treeSize }) => {
          witness.asked++;
          witness.sizes.push(treeSize);
          return pending('accepted');
        },
        poll: (request) => {
          witness.polled.push(`${request.checkpoint.treeSize} ${fromUtf8(request.state)}`);
          return witness.poll(request);
        },
        ...(options.oneAtATime && { oneAtATime: true }),
      },
      kind: WitnessKind.OPENTIMESTAMPS,
      environments: options.environments ?? [Environment.LIVE],
      required: true,
      everyMs: options.everyMs ?? 0,
    },
  };
  return witness;
}

function pending(state: string): WitnessAnswer {
  return { type: 'pending', state: utf8(state), detail: { state }, pollAfterMs: MINUTE_MS };
}

const landed = async (): Promise<WitnessAnswer> => ({
  type: 'landed',
  evidence: utf8('evidence'),
  detail: { state: 'landed' },
});

async function open(t: Test, witness: TestWitness) {
  return openPipeline(t, [witness], { deadlineMs: 60 * MINUTE_MS });
}

t.test('an accepted request is continued from its state until its evidence lands', async (t) => {
  const witness = slowWitness();
  const test = await open(t, witness);
  await test.submit(2);
  await drain(test.pipeline);
  t.equal(witness.asked, 1);
  t.same(witness.polled, [], 'not before its time');
  t.same(await statuses(test), [SEALED]);
  t.match(await listRequests(test.pool, test.logId), [{ treeSize: 2, detail: { state: 'accepted' } }]);
  witness.poll = async () => pending('at the calendar');
  await letPass(test, MINUTE_MS);
  await drain(test.pipeline);
  t.match(await listRequests(test.pool, test.logId), [{ detail: { state: 'at the calendar' } }]);
  witness.poll = landed;
  await letPass(test, MINUTE_MS);
  await drain(test.pipeline);
  t.same(witness.polled, ['2 accepted', '2 at the calendar']);
  t.equal(witness.asked, 1, 'it is not asked again meanwhile');
  t.same(await statuses(test), [WITNESSED]);
  t.same(await listRequests(test.pool, test.logId), []);
});

t.test('requests for several sizes are pending at once, and land in any order', async (t) => {
  const witness = slowWitness();
  const test = await open(t, witness);
  for (let batch = 0; batch < 3; batch++) {
    await test.submit(1);
    await drain(test.pipeline);
  }
  t.same(witness.sizes, [1, 2, 3]);
  witness.poll = async ({ checkpoint }) => (checkpoint.treeSize === 2 ? landed() : pending('later'));
  await letPass(test, MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED, WITNESSED, SEALED], 'the second covers the first');
  witness.poll = landed;
  await letPass(test, MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED, WITNESSED, WITNESSED]);
  const rows = await test.pool`SELECT tree_size FROM evidence ORDER BY tree_size`;
  t.same(
    rows.map(({ tree_size }) => tree_size),
    [1, 2, 3],
    'earlier evidence is kept as well',
  );
});

t.test('a failed poll keeps the state, records its error and is retried', async (t) => {
  const witness = slowWitness();
  const test = await open(t, witness);
  await test.submit(1);
  await drain(test.pipeline);
  witness.poll = () => Promise.reject(new Error('the calendar is away'));
  await letPass(test, MINUTE_MS);
  await drain(test.pipeline);
  t.match(await listRequests(test.pool, test.logId), [
    { lastError: 'the calendar is away', detail: { state: 'accepted' } },
  ]);
  const waits: number[] = [];
  for (let attempt = 0; attempt < 12; attempt++) {
    await test.pool`UPDATE witness_request SET next_poll_at = clock_timestamp()`;
    await runJob(test.pipeline, witnessJob(test.logId, 'slow'));
    const [row] = await test.pool<{ ms: number }[]>`
      SELECT (extract(epoch FROM next_poll_at - clock_timestamp()) * 1000)::bigint AS ms FROM witness_request`;
    waits.push(row?.ms ?? 0);
  }
  t.ok(
    waits.every((ms) => ms <= 10 * MINUTE_MS),
    'at most ten minutes',
  );
  t.ok((waits.at(-1) ?? 0) > 7 * MINUTE_MS, 'and nearly that in the end');
  witness.poll = landed;
  await letPass(test, 10 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED]);
});

t.test('a request whose worker died is continued by another from the stored state', async (t) => {
  const witness = slowWitness();
  const test = await open(t, witness);
  await test.submit(1);
  await drain(test.pipeline);
  await letPass(test, MINUTE_MS);
  const dead = await leaseDueRequest(test.pool, test.logId, 'slow', 5_000);
  t.match(dead, { attempt: 1, treeSize: 1 });
  await runJob(test.pipeline, witnessJob(test.logId, 'slow'));
  t.same(witness.polled, [], 'a leased request is left alone');
  await letPass(test, 6_000);
  witness.poll = landed;
  await drain(test.another());
  t.same(witness.polled, ['1 accepted']);
  t.same(await statuses(test), [WITNESSED]);
});

t.test('a worker that has lost its lease does not overwrite a newer state', async (t) => {
  const witness = slowWitness();
  const test = await open(t, witness);
  await test.submit(1);
  await drain(test.pipeline);
  await letPass(test, MINUTE_MS);
  witness.poll = async () => {
    witness.poll = async () => pending('newer');
    await test.pool`UPDATE witness_request SET leased_until = NULL, next_poll_at = clock_timestamp()`;
    await runJob(test.another(), witnessJob(test.logId, 'slow'));
    return pending('older');
  };
  await runJob(test.pipeline, witnessJob(test.logId, 'slow'));
  t.match(await listRequests(test.pool, test.logId), [{ detail: { state: 'newer' } }]);
});

t.test('a witness of one request at a time has one over all logs', async (t) => {
  const witness = slowWitness({ oneAtATime: true, environments: [Environment.LIVE, Environment.TEST] });
  const test = await open(t, witness);
  await test.submit(1);
  await drain(test.pipeline);
  const [other] = await test.pool<{ id: number }[]>`SELECT id FROM log WHERE id <> ${test.logId}`;
  const otherId = other?.id ?? 0;
  await test.pool`
    INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at,
                       registered_at)
    SELECT ${otherId}, tree_size, 'btc_other', first_index, root_hash, note, policy_version, sealed_at, deadline_at,
           registered_at
    FROM batch`;
  await test.submit(1);
  await drain(test.pipeline);
  t.same(witness.sizes, [1], 'neither a newer checkpoint nor another log is asked for');
  witness.poll = landed;
  await letPass(test, MINUTE_MS);
  await drain(test.pipeline);
  t.same(witness.sizes.length, 2, 'then the next');
  const rows = await test.pool`SELECT log_id FROM witness_request`;
  t.equal(rows.length, 1);
});

t.test('pending requests do not wait for the interval between two requests', async (t) => {
  const witness = slowWitness({ everyMs: 60 * MINUTE_MS });
  const test = await open(t, witness);
  await test.submit(1);
  await drain(test.pipeline);
  witness.poll = landed;
  await letPass(test, MINUTE_MS);
  await test.submit(1);
  await drain(test.pipeline);
  t.same(witness.sizes, [1], 'the next request waits for its interval');
  t.same(await statuses(test), [WITNESSED, SEALED]);
  await letPass(test, 60 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(witness.sizes, [1, 2]);
});

t.test('a request that will never be fulfilled is made again', async (t) => {
  const witness = slowWitness();
  const test = await open(t, witness);
  await test.submit(1);
  await drain(test.pipeline);
  witness.poll = async () => ({ type: 'abandoned', reason: 'the calendars have lost it' });
  await letPass(test, MINUTE_MS);
  await drain(test.pipeline);
  t.same(await listRequests(test.pool, test.logId), []);
  t.match(await listWitnessStates(test.pool, test.logId), [
    { failures: 1, lastError: 'the calendars have lost it' },
  ]);
  witness.poll = landed;
  await letPass(test, MINUTE_MS);
  await drain(test.pipeline);
  t.same(witness.sizes, [1, 1]);
  await letPass(test, MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED]);
});

t.test("a request is polled at once after an operator's request", async (t) => {
  const witness = slowWitness();
  const test = await open(t, witness);
  await test.submit(1);
  await drain(test.pipeline);
  witness.poll = landed;
  await makeWitnessDue(test.pool, 'slow');
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED]);
});
