import type { Test } from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import { migrate } from '../../../src/server/database/migrate.js';
import { installClock } from '../../support/breaking/database-clock.js';
import { makePipeline } from '../../support/pipeline.js';
import { simulate, TEN_WITNESSES_QUORUMS, tenWitnesses } from '../../support/witnesses/cadence.js';
import type { Options } from '../options.js';
import { openPool, type Services } from '../services.js';

/** The calls of ten witnesses in a simulated time. */
export type CadenceMeasurement = {
  hours: number;
  submissions: number;
  batches: number;
  witnessed: number;
  calls: { name: string; kind: string; everySeconds: number; requests: number; polls: number }[];
};

const PER_SECOND = 1_000;

/** Simulates a log of 1,000 submissions a second with ten witnesses, for `--hours`. */
export async function measureCadence(
  { createDatabase }: Pick<Services, 'createDatabase'>,
  { hours }: Pick<Options, 'hours'>,
): Promise<CadenceMeasurement> {
  return withShutdownHooks(async (hooks) => {
    const databaseUrl = await createDatabase('cadence');
    const admin = openPool(databaseUrl, hooks);
    await migrate(admin);
    // What is counted needs no disk: a day is 86,400 checkpoints.
    await admin.unsafe(
      `ALTER DATABASE ${new URL(databaseUrl).pathname.slice(1)} SET synchronous_commit = off`,
    );
    await installClock(databaseUrl);
    const owner: Pick<Test, 'teardown'> = { teardown: (stop) => hooks.add(async () => void (await stop())) };
    const witnesses = tenWitnesses();
    const test = await makePipeline(owner, { databaseUrl, witnesses, quorums: TEN_WITNESSES_QUORUMS });
    const seconds = hours * 3_600;
    await simulate(test, { seconds, perSecond: PER_SECOND });
    const [row] = await test.pool<{ batches: number; witnessed: number }[]>`
      SELECT count(*)::integer AS batches,
             count(*) FILTER (WHERE status = ${BatchStatus.WITNESSED})::integer AS witnessed FROM batch`;
    return {
      hours,
      submissions: seconds * PER_SECOND,
      batches: row?.batches ?? 0,
      witnessed: row?.witnessed ?? 0,
      calls: witnesses.map(({ name, setup, everyMs, asked, polls }) => ({
        name,
        kind: setup.witness.kind,
        everySeconds: everyMs / 1_000,
        requests: asked,
        polls,
      })),
    };
  });
}
