/** Commits wait for the synchronous standby, and the primary is restarted: as it was, as a standby, or without writes. */
import t from 'tap';
import { testEnds } from './failing-over.js';

testEnds(t, {
  'the primary restarts': (pair) => pair.restartPrimary(),
  'the primary is demoted': (pair) => pair.demotePrimary(),
  'the primary takes no writes by default': async (pair) => {
    await pair.makePrimaryReadOnly();
    await pair.endWaitingSessions();
  },
});
