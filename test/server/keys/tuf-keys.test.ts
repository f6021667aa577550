/** The keys that sign snapshot and timestamp of TUF, in files and in signing processes. */
import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { readConfig } from '../../../src/config/config.js';
import { createShutdownHooks } from '../../../src/server/core/shutdown.js';
import { openTufKeys } from '../../../src/server/keys/tuf-keys.js';
import { checkSigned, makeRoot, signMetadata } from '../../../src/server/public/tuf/metadata.js';
import { startSigningProcess } from '../../support/servers/signing-process.js';

const [inFile, remote] = [
  generateKeyPairSync('ed25519').privateKey,
  generateKeyPairSync('ed25519').privateKey,
];

t.test('keys of both kinds sign metadata, in the order of the setting', async (t) => {
  const process = await startSigningProcess(t, { online: remote });
  const dir = t.testdir({ 'tuf.pem': String(inFile.export({ type: 'pkcs8', format: 'pem' })) });
  const setting = `${dir}/tuf.pem,${process.setting('online')}`;
  const { tuf = [] } = readConfig({ TUF_KEY_FILE: setting }, { process: 'up' }).secrets;
  const hooks = createShutdownHooks();
  t.teardown(hooks.run);
  const keys = await openTufKeys(tuf, hooks);
  t.equal(keys.length, 2);
  const [onlineKey, ...rootKeys] = keys.map(({ publicKey }) => publicKey);
  const root = makeRoot(1, { rootKeys, threshold: 1, onlineKey: onlineKey! }, Date.now());
  await signMetadata(root, keys);
  for (const role of ['root', 'timestamp'] as const) checkSigned(root, role, root);
  await process.stop();
  await t.rejects(
    async () => keys[1]?.sign(new Uint8Array(1)),
    /the signing process at .* cannot sign with online/,
  );
});

t.test('a signing process that lacks the key is named', async (t) => {
  const process = await startSigningProcess(t, { online: remote });
  const source = { socketPath: process.path, keyId: 'other' };
  await t.rejects(openTufKeys([source], createShutdownHooks()), /cannot sign with other: it refuses/);
});
