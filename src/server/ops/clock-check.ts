import type { Pool } from '../database/connect.js';
import { MAX_CLOCK_OFFSET_MS, readClockOffsetMs } from '../database/session.js';
import type { Check } from './ops-listener.js';

/** The check of `/readyz` of a process that signs with this machine's time. */
export function clockCheck(pool: Pool): Check {
  const check = async () => {
    const offsetMs = await readClockOffsetMs(pool);
    if (Math.abs(offsetMs) <= MAX_CLOCK_OFFSET_MS) return undefined;
    return `this machine's clock is ${(offsetMs / 1000).toFixed(1)} s ahead of the database's: run an NTP client on both`;
  };
  return { name: 'clock', check };
}
