/** SIGKILL of a worker around requests that calendars have accepted: nothing is lost. */
import t from 'tap';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import type { Break } from '../../support/breaking/proxy.js';
import { commitOf, type Matching, statement } from '../../support/breaking/statement-matchers.js';
import { newCreation, send } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import { someOf } from '../../support/long.js';
import { until } from '../../support/until.js';
import { letLeasesRunOut, untilGone, WORKERS } from '../../support/wait-for-idle.js';
import { type Block, startCalendar } from '../../support/witnesses/opentimestamps/calendar.js';

const calendar = await startCalendar(t);

const scene = await setScene(t, {
  env: {
    WITNESSES: JSON.stringify([
      {
        name: 'bitcoin',
        kind: 'opentimestamps',
        calendars: [calendar.url],
        every: '1s',
        environments: ['live'],
      },
    ]),
  },
});
const { installation, pool, servers, apiKey } = scene;
const { proxy } = servers.postgres;
const api = await installation.startApi();
const blocks: Block[] = [];
let height = 850_000;

async function submit(): Promise<{ id: string; artifactSha256: string }> {
  const creation = newCreation();
  const { status, body } = await send(api.baseUrl, apiKey, creation);
  if (status !== 201) throw new Error(`the submission was answered with ${status}`);
  return { id: body.id, artifactSha256: creation.artifactSha256 };
}

/** Makes it later: leases run out, everything is due, and there is a new block. */
async function letTimePass(): Promise<void> {
  await pool`UPDATE witness_state SET next_attempt_at = clock_timestamp(), leased_until = NULL`;
  await pool`UPDATE witness_request SET next_poll_at = clock_timestamp()
             WHERE leased_until IS NULL OR leased_until < clock_timestamp()`;
  mine();
}

function mine(): void {
  blocks.push(calendar.mine(height++));
}

/** Waits until everything is covered, and nothing is pending. */
async function untilCovered(): Promise<void> {
  await until(
    'everything is covered',
    async () => {
      await letTimePass();
      const [row] = await pool<{ open: boolean }[]>`
        SELECT EXISTS (SELECT FROM witness_request)
            OR (SELECT covers_tree_size FROM witness_state WHERE log_id = 1)
               <= (SELECT max(log_index) FROM submission WHERE log_id = 1) AS open`;
      return row?.open === false;
    },
    120_000,
  );
}

async function verify({ id, artifactSha256 }: { id: string; artifactSha256: string }): Promise<string> {
  const authorization = `Bearer ${apiKey}`;
  const get = async (path: string) =>
    (await fetch(`${api.baseUrl}${path}`, { headers: { authorization } })).json();
  const bundle = await until('the bundle has the evidence', async () => {
    const json = (await get(`/v1/attestations/${id}/bundle.json`)) as { witnesses?: { name: string }[] };
    const names = (json.witnesses ?? []).map(({ name }) => name);
    return names.includes('bitcoin') ? json : undefined;
  });
  const { summary, verdict } = await verifyBundle(bundle, {
    artifactSha256,
    trustRoots: await get('/v1/service/trust_roots'),
    policy: { required: ['log', 'bitcoin'] },
    bitcoinHeaders: new Map(blocks.map((block) => [block.height, block.header])),
    now: new Date(),
  });
  return verdict === 'verified' ? verdict : summary;
}

/** That the stages behind are safe before and after each commit is shown by the tests of EVM witnesses. */
const POINTS: [what: string, when: Break, matching: () => Matching][] = [
  [
    'an accepted request is stored',
    'before the request arrives',
    () => commitOf('INSERT INTO witness_request'),
  ],
  [
    'a new state is stored',
    'before the answer arrives',
    () => statement('UPDATE witness_request SET\n      state'),
  ],
  ['evidence is stored', 'before the request arrives', () => commitOf('DELETE FROM witness_request')],
];

for (const [what, when, matching] of someOf(POINTS, 1)) {
  t.test(`the next worker completes the job of one killed while ${what}, ${when}`, async (t) => {
    const submitted = await submit();
    let isHeld = false;
    const held = proxy.holdNext(when, matching()).then(() => {
      isHeld = true;
    });
    const doomed = await installation.startWorker();
    await until('it gets there', async () => {
      await pool`UPDATE witness_state SET next_attempt_at = clock_timestamp()`;
      await pool`UPDATE witness_request SET next_poll_at = clock_timestamp() WHERE leased_until IS NULL`;
      if (what === 'evidence is stored') mine();
      return isHeld;
    });
    await held;
    await doomed.kill();
    await untilGone(pool, WORKERS);
    await letLeasesRunOut(pool);
    await servers.nats.forget();
    const next = await installation.startWorker();
    await untilCovered();
    await next.stop();
    t.equal(await verify(submitted), 'verified');
  });
}
