/** A campaign from beginning to end: faults while clients are at work, calm, and then everything is checked. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ShutdownHooks } from '../../src/server/core/shutdown.js';
import { calmDown } from './calm.js';
import { type BundlesChecked, checkBundles } from './clients/bundles.js';
import { call } from './clients/call.js';
import { startClients } from './clients/clients.js';
import { type Creator, createCreator } from './clients/creations.js';
import { startWatch } from './clients/watch.js';
import type { FaultKind } from './faults/fault-kind.js';
import { planRounds } from './faults/plan.js';
import { check, type Evidence, type Problem } from './judge/check.js';
import { fetchLogs, fetchRoots, type Roots, readTables } from './judge/observe.js';
import type { SceneName } from './options.js';
import { createRandom } from './random.js';
import { readRecord } from './record.js';
import { playRound, type RoundDone } from './round.js';
import { type Holdings, holdingsOf } from './scene/processes.js';
import { openScene, type Scene } from './scene/scene.js';

export type CampaignOptions = {
  dir: string;
  scene: SceneName;
  minutes: number;
  seed: string;
  rate: number;
  clients: number;
  /** Kinds of faults to choose from. */
  kinds: readonly FaultKind[];
};

/** Where what happens is told: `say` a line that stays, `progress` one that the next replaces. */
export type Reporter = { say(line: string): void; progress(line: string): void };

/** All that came of it. */
export type Result = {
  seed: string;
  minutes: number;
  rounds: RoundDone[];
  /** Kinds that cannot be had here. */
  unavailable: string[];
  counts: Record<string, number>;
  settledMs: number;
  holdings: Holdings[];
  looked: Record<string, number>;
  problems: Problem[];
  /** What the judge saw; for those who prove the judge. */
  evidence: Evidence;
  bundles: BundlesChecked;
  roots: Roots;
  /** Still running, until it is stopped. */
  scene: Scene;
};

/** Far above what a process holds at rest after hours; a leak passes it. */
const RSS_BOUND_MIB = 600;
const DESCRIPTOR_BOUND = 150;

/** Runs it in `dir`. What was started runs on until `hooks`. */
export async function runCampaign(
  options: CampaignOptions,
  reporter: Reporter,
  hooks: ShutdownHooks,
): Promise<Result> {
  const chosen = options.kinds;
  reporter.progress(
    'starting Postgres, three nats-servers, two authorities, two api and two worker processes',
  );
  const scene = await openScene(options.dir, hooks, {
    withDisks: chosen.some(({ needsDisks }) => needsDisks),
    withPatroni: options.scene === 'patroni',
    withStandby: chosen.some(({ needsStandby }) => needsStandby),
  });
  const kinds = chosen.filter(({ needsDisks }) => !needsDisks || scene.disks !== undefined);
  const unavailable = chosen.filter((kind) => !kinds.includes(kind)).map(({ name }) => name);
  const projects = await openOwners(scene);
  const roots = await fetchRoots(scene.apis()[0]!);
  writeFileSync(join(options.dir, 'roots.json'), JSON.stringify(roots));
  const random = createRandom(options.seed);
  const creator = createCreator(scene, random.fork('creations'));
  hooks.add(async () => creator.abandon());
  const { rounds, ...others } = await playRounds({ scene, creator, kinds, options, reporter, hooks });
  const calm = await calmDown(scene, creator, reporter.progress);
  const holdings = scene.processes.flatMap((each) => holdingsOf(each) ?? []);
  const bundles = await checkBundles(scene, roots, readRecord(scene.record.path).acknowledged, (done, of) =>
    reporter.progress(`${done} of ${of} bundles verified`),
  );
  reporter.progress('comparing the record with the log and the tables');
  const evidence = await gather(scene, roots, projects);
  const { looked, problems } = check(evidence);
  const counts = {
    ...creator.counts,
    ...others,
    'Postgres ended by itself': scene.postgres.crashes(),
    'nats-server ended by itself': scene.nats.crashes(),
  };
  return {
    seed: options.seed,
    minutes: options.minutes,
    rounds,
    unavailable,
    counts,
    settledMs: calm.ms,
    holdings,
    looked: {
      ...looked,
      'bundles verified': bundles.verified,
      'bundles verified by others': bundles.foreign,
    },
    problems: [
      ...problems,
      ...bundles.problems.map((problem) => ({ check: 'bundle', problem })),
      ...(calm.left
        ? [{ check: 'unsettled', problem: `left after ${calm.ms} ms: ${JSON.stringify(calm.left)}` }]
        : []),
      ...findLeaks(holdings),
    ],
    evidence,
    bundles,
    roots,
    scene,
  };
}

type Playing = {
  scene: Scene;
  creator: Creator;
  kinds: readonly FaultKind[];
  options: CampaignOptions;
  reporter: Reporter;
  hooks: ShutdownHooks;
};

async function playRounds({ scene, creator, kinds, options, reporter, hooks }: Playing) {
  const random = createRandom(options.seed);
  const { rate, clients: count } = options;
  const clients = startClients(scene, creator, { random: random.fork('clients'), rate, clients: count });
  const watch = startWatch(scene);
  let isOver = false;
  hooks.add(async () => {
    isOver = true;
  });
  const rounds: RoundDone[] = [];
  const begun = performance.now();
  const end = begun + options.minutes * 60_000;
  const say = (line: string) => reporter.say(`${((performance.now() - begun) / 1000).toFixed(1)} s  ${line}`);
  for (const round of planRounds(random.fork('faults'), kinds)) {
    if (isOver || performance.now() >= end) break;
    const done = await playRound({ scene, creator, hooks, isOver: () => isOver, say }, round);
    rounds.push(done);
    const { acknowledged } = creator.counts;
    const left = Math.max(0, (end - performance.now()) / 60_000).toFixed(1);
    reporter.progress(`${rounds.length} rounds, ${acknowledged} acknowledged, ${left} min to go`);
  }
  reporter.progress('the last fault is over; waiting until clients have their answers');
  await clients.stop();
  await watch.stop();
  return { rounds, ...clients.counts };
}

/** Subscribes each to every event. @returns projects by owner */
async function openOwners(scene: Scene): Promise<Record<string, string>> {
  const api = scene.apis()[0]!;
  const projects: Record<string, string> = {};
  for (const { name, apiKey } of scene.owners) {
    const events = ['attestation.witnessed', 'attestation.partial', 'attestation.failed'];
    const body = { url: scene.endpoint.urlFor(name), events };
    const { body: webhook, text } = await call(`${api}/v1/webhooks`, { apiKey, method: 'POST', body });
    if (webhook.secret === undefined) throw new Error(`no subscription was made: ${text}`);
    scene.endpoint.trust(name, webhook.secret);
    const me = await call(`${api}/v1/service/me`, { apiKey });
    projects[name] = (JSON.parse(me.text) as { project: { id: string } }).project.id;
  }
  return projects;
}

async function gather(scene: Scene, roots: Roots, projects: Record<string, string>): Promise<Evidence> {
  const logs = await fetchLogs(scene.apis()[0]!, roots);
  const tables = await scene.withDatabase((sql) => readTables(sql, projects));
  const owners = Object.fromEntries(scene.owners.map(({ name, environment }) => [name, environment]));
  return { record: readRecord(scene.record.path), observed: { logs, tables }, owners };
}

function findLeaks(holdings: readonly Holdings[]): Problem[] {
  return holdings
    .filter(({ rssMib, descriptors }) => rssMib > RSS_BOUND_MIB || descriptors > DESCRIPTOR_BOUND)
    .map((held) => ({ check: 'leak', problem: JSON.stringify(held) }));
}
