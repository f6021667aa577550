/** How often witnesses are called, whatever the traffic. */
import t from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import { openPipeline } from '../../support/pipeline.js';
import {
  countedWitness,
  simulate,
  TEN_WITNESSES_QUORUMS,
  tenWitnesses,
} from '../../support/witnesses/cadence.js';

const MINUTE_MS = 60_000;

t.test('a costly witness is called by its interval, however many batches there are', async (t) => {
  const chain = { kind: 'evm', pendingMs: 20_000, pollAfterMs: 5_000, oneAtATime: true } as const;
  const evm = countedWitness({ name: 'evm', ...chain, everyMs: MINUTE_MS });
  const bitcoin = countedWitness({
    name: 'bitcoin',
    kind: 'opentimestamps',
    everyMs: MINUTE_MS,
    pendingMs: 2 * MINUTE_MS,
    pollAfterMs: 30_000,
  });
  const tsa = countedWitness({ name: 'tsa', kind: 'rfc3161', required: true });
  const test = await openPipeline(t, [evm, bitcoin, tsa]);
  await simulate(test, { seconds: 180, perSecond: 1_000 });
  t.equal(tsa.asked, 180, 'one request a batch');
  t.ok(evm.asked === 3 || evm.asked === 4, `${evm.asked} transactions in three minutes`);
  t.ok(bitcoin.asked === 3 || bitcoin.asked === 4, `${bitcoin.asked} submissions in three minutes`);
  t.ok(evm.polls <= 5 * evm.asked, `${evm.polls} polls of the chain`);
  const [row] = await test.pool`
    SELECT count(*) FILTER (WHERE status = ${BatchStatus.WITNESSED})::integer AS witnessed FROM batch`;
  t.ok(row?.witnessed >= 179, 'all but the last are witnessed');
});

t.test('ten witnesses do not delay each other', async (t) => {
  const witnesses = tenWitnesses();
  const test = await openPipeline(t, witnesses, { quorums: TEN_WITNESSES_QUORUMS });
  await simulate(test, { seconds: 60, perSecond: 1_000 });
  const asked = Object.fromEntries(witnesses.map(({ name, asked }) => [name, asked]));
  t.match(asked, { 'tsa-a': 60, 'tsa-day': 1, 'cosigner-a': 60, bitcoin: 1, 'evm-hour': 1, 'evm-day': 1 });
  t.ok(Number(asked['cosigner-gone']) < 12, 'one that is away is backed off from');
});
