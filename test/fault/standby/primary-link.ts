/** A link to the primary of a pair, which tests break, and the watches of replicas that notice it. */
import type { Test } from 'tap';
import type { Pool } from '../../../src/server/database/connect.js';
import { type Link, startLink } from '../../support/breaking/link.js';
import type { StandbyPair } from '../../support/standby/standby-pair.js';
import { until } from '../../support/until.js';

/** A link to the primary, as a process sees it, and the URL of it. */
export async function linkTo(t: Test, { url }: StandbyPair): Promise<{ link: Link; url: string }> {
  const linked = new URL(url);
  const link = await startLink({ host: '127.0.0.1', port: Number(linked.port) });
  t.teardown(link.close);
  linked.port = String(link.port);
  return { link, url: linked.href };
}

/**
 * Waits until so many watches of replicas have asked a server since the call, and have its answer: a watch asks again once
 * it has.
 */
export async function untilAsked(
  server: Pool,
  by: 'attest primary' | 'attest replica',
  watches = 1,
): Promise<void> {
  for (const what of ['asks', 'asks again']) {
    const [{ since } = {}] = await server<{ since: Date }[]>`SELECT clock_timestamp() AS since`;
    await until(`${by} ${what}`, async () => {
      const rows = await server`
        SELECT FROM pg_stat_activity
        WHERE application_name = ${by} AND state = 'idle' AND query LIKE '%pg_control_system%'
          AND query_start > ${since ?? null}::timestamptz`;
      return rows.length >= watches;
    });
  }
}
