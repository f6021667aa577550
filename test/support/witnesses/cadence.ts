/** A simulated time of a log that grows steadily, with witnesses of several kinds and cadences: how often each is called. */

import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { findDueLogJobs } from '../../../src/server/pipeline/reconcile.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import type { Witness, WitnessAnswer } from '../../../src/server/witnessing/clients/witness.js';
import { letPass } from '../breaking/database-clock.js';
import type { TestPipeline, TestWitness } from '../pipeline.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Seconds; what witnesses have done is settled less often than it is in a worker, which no call depends on. */
const SETTLED_EVERY = 60;

/** A witness that counts its calls. */
export type CountedWitness = TestWitness & { polls: number; everyMs: number };

type CadenceOptions = {
  name: string;
  kind: Witness['kind'];
  everyMs?: number;
  required?: boolean;
  /** How long it takes to fulfil a request that it has accepted; at once if omitted. */
  pendingMs?: number;
  pollAfterMs?: number;
  oneAtATime?: true;
  /** Whether it is away, by the number of requests made to it so far. */
  isAway?: (asked: number) => boolean;
};

const KINDS = {
  log_witness: WitnessKind.LOG_WITNESS,
  rfc3161: WitnessKind.RFC3161,
  opentimestamps: WitnessKind.OPENTIMESTAMPS,
  evm: WitnessKind.EVM,
} as const;

const LANDED: WitnessAnswer = { type: 'landed', evidence: utf8('evidence'), detail: {} };

/** A witness of this cadence. Its evidence verifies nothing. */
export function countedWitness(options: CadenceOptions): CountedWitness {
  const { name, kind, everyMs = 0, pendingMs = 0, pollAfterMs = MINUTE_MS } = options;
  const pending: WitnessAnswer = { type: 'pending', state: utf8(name), detail: {}, pollAfterMs };
  const counted: CountedWitness = {
    name,
    everyMs,
    asked: 0,
    polls: 0,
    manner: () => Promise.reject(new Error('not used')),
    setup: {
      witness: {
        name,
        kind,
        ask: async () => {
          counted.asked++;
          if (options.isAway?.(counted.asked)) throw new Error('away');
          return pendingMs > 0 ? pending : LANDED;
        },
        poll: async ({ ageMs }) => {
          counted.polls++;
          return ageMs >= pendingMs ? LANDED : pending;
        },
        ...(options.oneAtATime && { oneAtATime: true }),
      },
      kind: KINDS[kind],
      environments: [Environment.LIVE],
      required: options.required ?? false,
      everyMs,
    },
  };
  return counted;
}

/** Ten witnesses as a careful operator might have them. */
export function tenWitnesses(): CountedWitness[] {
  const bitcoin = { kind: 'opentimestamps', everyMs: HOUR_MS, pendingMs: 2 * HOUR_MS } as const;
  const chain = {
    kind: 'evm',
    pendingMs: 3 * MINUTE_MS,
    pollAfterMs: 15 * SECOND_MS,
    oneAtATime: true,
  } as const;
  return [
    countedWitness({ name: 'tsa-a', kind: 'rfc3161' }),
    countedWitness({ name: 'tsa-b', kind: 'rfc3161', isAway: (asked) => asked > 1_000 && asked < 1_100 }),
    countedWitness({ name: 'tsa-minute', kind: 'rfc3161', everyMs: MINUTE_MS }),
    countedWitness({ name: 'tsa-day', kind: 'rfc3161', everyMs: 24 * HOUR_MS }),
    countedWitness({ name: 'cosigner-a', kind: 'log_witness', required: true }),
    countedWitness({ name: 'cosigner-b', kind: 'log_witness', everyMs: 10 * SECOND_MS }),
    countedWitness({ name: 'cosigner-gone', kind: 'log_witness', isAway: () => true }),
    countedWitness({ name: 'bitcoin', ...bitcoin, pollAfterMs: 10 * MINUTE_MS }),
    countedWitness({ name: 'evm-hour', ...chain, everyMs: HOUR_MS }),
    countedWitness({ name: 'evm-day', ...chain, everyMs: 24 * HOUR_MS }),
  ];
}

/** Two of the authorities are needed beside the required cosigner. */
export const TEN_WITNESSES_QUORUMS = [{ threshold: 2, members: ['tsa-a', 'tsa-b', 'tsa-minute'] }];

/** Publishes a batch of `perSecond` leaves each second, and runs what is due. Only batches are stored, no leaves. */
export async function simulate(
  test: Pick<TestPipeline, 'pipeline' | 'pool' | 'logId'>,
  { seconds, perSecond }: { seconds: number; perSecond: number },
): Promise<void> {
  const { pipeline, pool, logId } = test;
  for (let second = 1; second <= seconds; second++) {
    await pool`
      INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at,
                         registered_at)
      SELECT ${logId}, ${second * perSecond}, ${`btc_${second}`}, ${(second - 1) * perSecond}, '\\x00', '',
             max(version), clock_timestamp(), clock_timestamp() + interval '1 hour', clock_timestamp()
      FROM policy WHERE environment = ${Environment.LIVE}`;
    const jobs = await findDueLogJobs(pipeline);
    const due = (stage: Job['stage']['case']) => jobs.filter((job) => job.stage.case === stage);
    // Witnesses are independent of each other.
    await Promise.all(due('witness').map((job) => runJob(pipeline, job)));
    if (second % SETTLED_EVERY === 0) for (const job of due('settle')) await runJob(pipeline, job);
    await letPass(test, SECOND_MS);
  }
}
