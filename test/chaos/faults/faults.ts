/** The kinds of faults: what each does to whom, and what ends it. */

import { type SceneName, UsageError } from '../options.js';
import type { AuthorityMood } from '../scene/authorities.js';
import type { DiskName } from '../scene/disks.js';
import type { EndpointMood } from '../scene/endpoint.js';
import type { Role } from '../scene/processes.js';
import type { Scene } from '../scene/scene.js';
import type { ServerName } from '../scene/servers.js';
import { type FaultKind, LONG } from './fault-kind.js';
import { linkFaults } from './link-faults.js';
import { NATS_FAULTS } from './nats-faults.js';
import { PATRONI_FAULTS } from './patroni-faults.js';
import { STANDBY_FAULTS } from './standby-faults.js';

const PROCESSES: Record<Role, readonly string[]> = {
  api: ['api-1', 'api-2', 'api-1+api-2'],
  worker: ['worker-1', 'worker-2', 'worker-1+worker-2'],
};
const SHORT = [0, 2_000] as const;

/** Every kind, in the order of the result's table. */
export const FAULT_KINDS: readonly FaultKind[] = [
  ...(['api', 'worker'] as const).flatMap((role) => processFaults(role)),
  ...ofPair(serverFaults('postgres')),
  ...serverFaults('nats'),
  {
    name: "nats-server's store is deleted",
    targets: ['nats'],
    durationMs: SHORT,
    begin: async ({ nats }) => {
      await nats.kill();
      await nats.forget();
      return () => nats.start();
    },
  },
  ...NATS_FAULTS,
  ...ofPair(linkFaults('postgres')),
  ...linkFaults('nats'),
  {
    name: 'commits are slow',
    scene: 'pair',
    targets: ['postgres'],
    durationMs: [2_000, 8_000],
    begin: async ({ postgres }) => {
      // Each commit sleeps for so long before its flush.
      await postgres.configure('commit_delay = 100000\ncommit_siblings = 0\n');
      return () => postgres.configure('');
    },
  },
  ...ofPair(STANDBY_FAULTS),
  ...PATRONI_FAULTS,
  ...diskFaults(),
  ...(['fails', 'hangs', 'is slow', 'talks rubbish', 'repeats'] as const).map(authorityFault),
  ...(['fails', 'hangs', 'is slow', 'resets'] as const).map(endpointFault),
];

function ofPair(kinds: readonly FaultKind[]): FaultKind[] {
  return kinds.map((kind) => ({ ...kind, scene: 'pair' }));
}

/** Those of a scene with these names, or all of it. Throws UsageError when one of the names is of no kind. */
export function chooseKinds(only: readonly string[] | undefined, scene: SceneName): readonly FaultKind[] {
  const kinds = FAULT_KINDS.filter((kind) => kind.scene === undefined || kind.scene === scene);
  if (only === undefined) return kinds;
  return only.map((name) => {
    const kind = kinds.find((each) => each.name === name);
    if (kind === undefined)
      throw new UsageError(`there is no kind of faults "${name}" in the scene ${scene}; --list prints them`);
    return kind;
  });
}

function processFaults(role: Role): FaultKind[] {
  const each = (scene: Scene, target: string) =>
    scene.processes.filter(({ name }) => target.split('+').includes(name));
  const targets = PROCESSES[role];
  return [
    {
      name: `${role} is killed`,
      targets,
      durationMs: SHORT,
      begin: async (scene, target) => {
        await Promise.all(each(scene, target).map((one) => one.kill()));
        return async () => void (await Promise.all(each(scene, target).map((one) => one.start())));
      },
    },
    {
      name: `${role} is stopped and continued`,
      targets,
      durationMs: LONG,
      begin: async (scene, target) => {
        for (const one of each(scene, target)) one.signal('SIGSTOP');
        return async () => {
          for (const one of each(scene, target)) one.signal('SIGCONT');
        };
      },
    },
    {
      name: `${role} is restarted`,
      targets,
      durationMs: [0, 0],
      begin: async (scene, target) => {
        const restarted = each(scene, target);
        const stopping = restarted.map((one) =>
          one.stop().catch((error: Error) => scene.record.write({ what: 'wrong', problem: error.message })),
        );
        return async () => {
          await Promise.all(stopping);
          await Promise.all(restarted.map((one) => one.start()));
        };
      },
    },
  ];
}

function serverFaults(name: ServerName): FaultKind[] {
  const title = name === 'postgres' ? 'Postgres' : 'nats-server';
  const targets = [name];
  return [
    {
      name: `${title} is killed`,
      targets,
      durationMs: SHORT,
      begin: async (scene) => {
        await scene[name].kill();
        return () => scene[name].start();
      },
    },
    {
      name: `${title} is restarted`,
      targets,
      durationMs: SHORT,
      begin: async (scene) => {
        await scene[name].stop();
        return () => scene[name].start();
      },
    },
    {
      name: `${title} is stopped and continued`,
      targets,
      durationMs: LONG,
      begin: async (scene) => {
        scene[name].signal('SIGSTOP');
        return async () => scene[name].signal('SIGCONT');
      },
    },
  ];
}

function diskFaults(): FaultKind[] {
  const names: Record<DiskName, string> = {
    postgres: "Postgres's disk",
    nats: "nats-server's disk",
    register: "the register's disk",
  };
  return (Object.keys(names) as DiskName[]).flatMap((name): FaultKind[] => [
    {
      name: `${names[name]} is full`,
      ...(name === 'postgres' && { scene: 'pair' as const }),
      targets: [name],
      durationMs: LONG,
      needsDisks: true,
      begin: async ({ disks }) => {
        await disks![name].fill();
        return () => disks![name].free();
      },
    },
    {
      name: `${names[name]} hangs`,
      ...(name === 'postgres' && { scene: 'pair' as const }),
      targets: [name],
      durationMs: [500, 8_000],
      needsDisks: true,
      begin: async ({ disks }) => {
        await disks![name].freeze();
        return () => disks![name].thaw();
      },
    },
  ]);
}

function authorityFault(mood: AuthorityMood): FaultKind {
  return {
    name: `an authority ${mood}`,
    targets: ['foreign', 'own', 'foreign+own'],
    // Longer than the deadline of a batch at times.
    durationMs: [2_000, 90_000],
    begin: async ({ authorities }, target) => {
      const chosen = authorities.filter(({ name }) => target.split('+').includes(name));
      for (const authority of chosen) authority.mood = mood;
      return async () => {
        for (const authority of chosen) authority.mood = 'answers';
      };
    },
  };
}

function endpointFault(mood: EndpointMood): FaultKind {
  return {
    name: `the webhook endpoint ${mood}`,
    targets: ['endpoint'],
    durationMs: [1_000, 20_000],
    begin: async ({ endpoint }) => {
      endpoint.mood = mood;
      return async () => {
        endpoint.mood = 'takes';
      };
    },
  };
}
