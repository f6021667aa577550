/** Faults of one node of JetStream's three: with two others the stream goes on. */
import type { NatsNode } from '../../support/servers/nats-cluster.js';
import { type FaultKind, LONG } from './fault-kind.js';

const LEADER = 'leader';
/** The leader is the node that leads the stream when the fault begins. */
const TARGETS = ['node-0', 'node-1', 'node-2', LEADER];
const DOWN = [0, 15_000] as const;

export const NATS_FAULTS: readonly FaultKind[] = [
  nodeFault('is killed', DOWN, async (node) => {
    await node.kill();
    return () => node.start();
  }),
  nodeFault('is restarted', DOWN, async (node) => {
    await node.stop();
    return () => node.start();
  }),
  nodeFault('is stopped and continued', LONG, async (node) => {
    node.signal('SIGSTOP');
    return async () => node.signal('SIGCONT');
  }),
  nodeFault('loses its store', DOWN, async (node) => {
    await node.kill();
    await node.forget();
    return () => node.start();
  }),
];

function nodeFault(
  what: string,
  durationMs: FaultKind['durationMs'],
  begin: (node: NatsNode) => Promise<() => Promise<void>>,
): FaultKind {
  return {
    name: `a node of JetStream ${what}`,
    targets: TARGETS,
    durationMs,
    begin: async ({ nats }, target) =>
      begin(target === LEADER ? await nats.leader() : nats.nodes.find(({ name }) => name === target)!),
  };
}
