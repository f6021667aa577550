/** A short campaign with a given seed; then its judge is shown to notice whatever is broken. */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { createShutdownHooks } from '../../src/server/core/shutdown.js';
import { isLong } from '../support/long.js';
import { runCampaign } from './campaign.js';
import { chooseKinds } from './faults/faults.js';
import { proveChecker } from './judge/prove.js';
import { reportLines } from './report.js';

/** Of those that are over quickly. */
const KINDS = [
  'api is killed',
  'worker is killed',
  'api is stopped and continued',
  'api is restarted',
  'Postgres is killed',
  'nats-server is killed',
  "nats-server's store is deleted",
  'a node of JetStream is killed',
  'connections to Postgres are reset',
  'connections to Postgres stall',
  'connections to Postgres carry no answers',
  'connections to NATS are refused',
  'commits are slow',
  'an authority repeats',
  'the webhook endpoint resets',
];

const dir = await mkdtemp(join(tmpdir(), 'attest-chaos-'));
await chmod(dir, 0o711);
const hooks = createShutdownHooks();
t.teardown(async () => {
  await hooks.run();
  await rm(dir, { recursive: true, force: true });
});

const lines: string[] = [];
const reporter = { say: (line: string) => void lines.push(line), progress: () => {} };
const options = {
  dir,
  minutes: isLong ? 0.4 : 0.2,
  seed: 'a test',
  rate: 15,
  clients: 8,
  scene: 'pair' as const,
  kinds: chooseKinds(KINDS, 'pair'),
};
const result = await runCampaign(options, reporter, hooks);

t.test('nothing is lost, doubled, forked, shown to strangers or left behind', async (t) => {
  t.comment(lines.join('\n'));
  t.same(result.problems, []);
  t.ok(result.rounds.length > 0 && lines.length > 0, 'faults were made');
  for (const [what, count] of Object.entries(result.looked)) t.ok(count > 0, what);
  t.match(reportLines(result), /seed a test.*everything held/s);
});

t.test('the judge notices every sabotage of the record, the tables and a bundle', async (t) => {
  const proven = await proveChecker(result);
  for (const where of ['record', 'tables', 'bundle'])
    t.ok(proven.filter((each) => each.where === where).length >= 8, where);
  for (const { where, sabotage, found } of proven) t.not(found.length, 0, `${where}: ${sabotage}`);
});
