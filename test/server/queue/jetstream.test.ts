/** Connecting to JetStream while it cannot be reached. */
import { getEventListeners } from 'node:events';
import t from 'tap';
import { createLogger } from '../../../src/server/core/logger.js';
import { openQueue } from '../../../src/server/queue/jetstream.js';
import { findFreePort } from '../../support/servers/free-port.js';

t.test('an attempt that fails leaves no listener on the signal that all attempts share', async (t) => {
  const closing = new AbortController();
  const url = `nats://127.0.0.1:${await findFreePort()}`;
  const log = createLogger({ level: 'silent' });
  const options = { url, prefix: 'a', name: 'a', replicas: 1, stages: [], log, closing: closing.signal };
  await t.rejects(openQueue(options), { code: 'CONNECTION_REFUSED' });
  t.same(getEventListeners(closing.signal, 'abort'), []);
});
