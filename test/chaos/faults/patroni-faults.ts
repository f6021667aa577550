/** Faults of a node of Patroni: leader, synchronous standby, or the third. */
import type { PatroniNode } from '../../support/standby/patroni-node.js';
import type { FaultKind } from './fault-kind.js';

/** A leader's lease of 20 s runs out in the longer ones, and another node takes over. */
const PAST_THE_LEASE = [1_000, 40_000] as const;
const NODES = ['a', 'b', 'c'];

export const PATRONI_FAULTS: readonly FaultKind[] = [
  nodeFault('is killed with its Patroni', async (node) => {
    await node.kill();
    return () => node.start();
  }),
  nodeFault('is stopped and continued', async (node) => {
    node.standStill();
    return async () => node.goOn();
  }),
  nodeFault('is without its Patroni', async (node) => {
    await node.killPatroni();
    return () => node.start();
  }),
  nodeFault('is cut off', async (node) => {
    node.setNetwork('stalls');
    return async () => node.setNetwork('passes');
  }),
  {
    name: "Patroni's leader is another one",
    targets: ['leader'],
    durationMs: [0, 2_000],
    scene: 'patroni',
    begin: async ({ patroni }) => {
      const { leader, synchronous } = await patroni!.untilHealthy();
      await patroni!.switchOver(leader, synchronous);
      return async () => {};
    },
  },
];

function nodeFault(what: string, begin: (node: PatroniNode) => Promise<() => Promise<void>>): FaultKind {
  return {
    name: `a node of Patroni ${what}`,
    targets: NODES,
    durationMs: PAST_THE_LEASE,
    scene: 'patroni',
    begin: ({ patroni }, target) => begin(patroni!.nodes.find(({ name }) => name === target)!),
  };
}
