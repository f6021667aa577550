/** Commits wait for the synchronous standby, and their sessions or their waits are ended, those of retries as well. */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { StandbyPair } from '../../support/standby/standby-pair.js';
import { type End, testEnds } from './failing-over.js';

const PAUSE_MS = 100;

const often =
  (end: (pair: StandbyPair) => Promise<void>): End =>
  async (pair, isOver) => {
    while (!isOver()) {
      await end(pair);
      await delay(PAUSE_MS);
    }
  };

testEnds(t, {
  'their sessions are ended': often((pair) => pair.endWaitingSessions()),
  'their waits are cancelled': often((pair) => pair.cancelWaits()),
});
