/** Faults of the network between a process and a server. */

import type { Link, LinkMode } from '../../support/breaking/link.js';
import type { Server, ServerName } from '../scene/servers.js';
import { type FaultKind, LONG } from './fault-kind.js';

const LINKS = [
  'api-1',
  'api-2',
  'worker-1',
  'worker-2',
  'worker-1+worker-2',
  'api-1+api-2+worker-1+worker-2',
];

/** Those of one server: each process can be cut off by itself. */
export function linkFaults(server: ServerName): FaultKind[] {
  const title = server === 'postgres' ? 'Postgres' : 'NATS';
  const links = (of: Server, target: string) => target.split('+').map((user) => of.links.get(user)!);
  const fault = (
    what: string,
    durationMs: FaultKind['durationMs'],
    begin: (link: Link) => void,
    end: (link: Link) => void,
  ): FaultKind => ({
    name: `connections to ${title} ${what}`,
    targets: LINKS,
    durationMs,
    begin: async (scene, target) => {
      const chosen = links(scene[server], target);
      for (const link of chosen) begin(link);
      return async () => {
        for (const link of chosen) end(link);
      };
    },
  });
  const mode = (what: string, wanted: LinkMode, durationMs: FaultKind['durationMs']) =>
    fault(
      what,
      durationMs,
      (link) => link.set(wanted),
      (link) => link.set('passes'),
    );
  return [
    fault(
      'are reset',
      [0, 0],
      (link) => link.cut('reset'),
      () => {},
    ),
    fault(
      'are ended',
      [0, 0],
      (link) => link.cut('end'),
      () => {},
    ),
    mode('are refused', 'refuses', LONG),
    mode('stall', 'stalls', LONG),
    mode('carry no answers', 'one-way', LONG),
    mode('are half-open', 'half-open', LONG),
    fault(
      'are slow',
      [2_000, 8_000],
      (link) => link.delay(80),
      (link) => link.delay(0),
    ),
  ];
}
