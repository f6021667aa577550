import type { Pool } from '../database/connect.js';
import { readClockOffsetMs } from '../database/session.js';
import type { Check } from './ops-listener.js';

/** In milliseconds. Machines with NTP differ by less; receivers of webhooks reject signatures of another time. */
export const MAX_CLOCK_OFFSET_MS = 5_000;

/** The check of `/readyz` of a process that signs with this machine's time. */
export function clockCheck(pool: Pool): Check {
  const check = async () => {
    const offsetMs = await readClockOffsetMs(pool);
    if (Math.abs(offsetMs) <= MAX_CLOCK_OFFSET_MS) return undefined;
    return `this machine's clock is ${(offsetMs / 1000).toFixed(1)} s ahead of the database's: run an NTP client on both`;
  };
  return { name: 'clock', check };
}
