/** Faults of a Postgres whose commits wait for a standby. */
import { setTimeout as delay } from 'node:timers/promises';
import { type FaultKind, LONG } from './fault-kind.js';

/** How long the old primary is asked while it is in recovery, before the standby is promoted. */
const DEMOTED_MS = 2_000;

export const STANDBY_FAULTS: readonly FaultKind[] = [
  {
    name: "Postgres's standby stalls",
    targets: ['standby'],
    durationMs: LONG,
    needsStandby: true,
    begin: async ({ standby }) => {
      standby!.link.set('stalls');
      return async () => standby!.link.set('passes');
    },
  },
  {
    name: "Postgres's standby is cut off",
    targets: ['standby'],
    durationMs: LONG,
    needsStandby: true,
    begin: async ({ standby }) => {
      standby!.link.set('refuses');
      return async () => standby!.link.set('passes');
    },
  },
  {
    name: 'Postgres fails over',
    targets: ['postgres'],
    durationMs: [500, 6_000],
    needsStandby: true,
    begin: async ({ standby }) => {
      // Commits wait from here on, and what is committed on the primary alone is lost.
      standby!.link.set('refuses');
      return async () => {
        await standby!.demotePrimary();
        await delay(DEMOTED_MS);
        await standby!.takeOver();
      };
    },
  },
];
