import t from 'tap';
import { resolvedBy } from '../../support/source/loaded-modules.js';
import { folder } from './artifact-folder.js';

t.test('verifying loads no server code', async (t) => {
  const { args } = folder(t);
  const main = new URL('../../../src/main.js', import.meta.url).href;
  const loaded = await resolvedBy(
    `process.argv = ${JSON.stringify(['node', 'attest', ...args])};\nawait import(${JSON.stringify(main)});`,
  );
  t.match(loaded, '/proof/verify/verify.', 'what is loaded can be seen');
  for (const name of ['/fastify/', '/nats/', '/postgres/', '/store/', '/pipeline/', '/http/']) {
    t.notOk(loaded.includes(name), name);
  }
});
