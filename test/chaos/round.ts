/** One round of a campaign: its faults begin and end, and then everything has to recover. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ShutdownHooks } from '../../src/server/core/shutdown.js';
import { call } from './clients/call.js';
import type { Creator } from './clients/creations.js';
import type { PlannedFault, Round } from './faults/plan.js';
import type { Acknowledged } from './record.js';
import type { Scene } from './scene/scene.js';

/** How long after the last fault's end it took. */
export type Recovery = {
  /** Until each API process had acknowledged a new submission. */
  acceptsMs: number;
  /** Until those submissions were witnessed. */
  witnessedMs: number;
};

export type RoundDone = { faults: PlannedFault[]; recovery: Recovery };

export type RoundDeps = {
  scene: Scene;
  creator: Creator;
  /** Faults that have not ended are ended by them, should the campaign be broken off. */
  hooks: ShutdownHooks;
  /** Whether the campaign is broken off: then no fault begins any more. */
  isOver: () => boolean;
  say: (line: string) => void;
};

/** Recovery that takes longer is a defect. */
const RECOVERY_BOUND_MS = 120_000;
const POLL_MS = 100;

/** Plays it. What does not recover in time is recorded as wrong. */
export async function playRound(deps: RoundDeps, round: Round): Promise<RoundDone> {
  await Promise.all(round.faults.map((fault) => playFault(deps, fault)));
  const recovery = await measureRecovery(deps, round);
  await delay(round.pauseMs);
  return { faults: round.faults, recovery };
}

async function playFault({ scene, hooks, isOver, say }: RoundDeps, fault: PlannedFault): Promise<void> {
  const { kind, target, afterMs, durationMs } = fault;
  await delay(afterMs);
  if (isOver()) return;
  say(`${kind.name}: ${target}, ${(durationMs / 1000).toFixed(1)} s`);
  const end = once(await kind.begin(scene, target));
  hooks.add(end);
  await delay(durationMs);
  await end();
}

function once(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= run();
    return running;
  };
}

/** A new submission through each API process. */
async function measureRecovery({ scene, creator }: RoundDeps, { faults }: Round): Promise<Recovery> {
  const begun = performance.now();
  const sinceMs = () => Math.round(performance.now() - begun);
  await Promise.all([scene.postgres.start(), scene.nats.start()]);
  const what = faults.map(({ kind, target }) => `${kind.name} (${target})`).join(', ');
  const late = (hope: string) => {
    const problem = `${hope} did not come within ${RECOVERY_BOUND_MS / 1000} s of: ${what}`;
    scene.record.write({ what: 'wrong', problem });
  };
  const apis = scene.processes.filter(({ role }) => role === 'api');
  const made = await within(
    Promise.all(
      apis.map(async (api, i) => {
        const owner = scene.owners[i % scene.owners.length]!;
        const probe = await creator.create(creator.newCreation(owner), () => api.up()?.baseUrl);
        return { owner, probe };
      }),
    ),
  );
  const acceptsMs = sinceMs();
  if (made === undefined) {
    late('a 201 from each API');
    return { acceptsMs, witnessedMs: acceptsMs };
  }
  const witnessed = await within(
    Promise.all(made.map(({ owner, probe }) => untilWitnessed(scene, owner.apiKey, probe))),
  );
  if (witnessed === undefined) late('a witnessed submission');
  return { acceptsMs, witnessedMs: sinceMs() };
}

/** Its value, or undefined when it takes longer than the bound. */
async function within<T>(promise: Promise<T>): Promise<T | undefined> {
  const timer = new AbortController();
  const value = await Promise.race([promise, delay(RECOVERY_BOUND_MS, undefined, { signal: timer.signal })]);
  timer.abort();
  return value;
}

/** Gives up some time after the bound, so that nothing of it goes on for long. */
async function untilWitnessed(scene: Scene, apiKey: string, made: Acknowledged | undefined): Promise<true> {
  const end = performance.now() + 2 * RECOVERY_BOUND_MS;
  while (made !== undefined && performance.now() < end) {
    for (const api of scene.apis()) {
      const { body } = await call(`${api}/v1/attestations/${made.id}`, { apiKey });
      if (body.status === 'witnessed') return true;
    }
    await delay(POLL_MS);
  }
  return true;
}
