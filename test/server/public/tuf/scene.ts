/** A service with a TUF repository, its operator, and its clients. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import type { Test } from 'tap';
import { rawEd25519PublicKey } from '../../../../src/server/keys/secrets.js';
import { logManager } from '../../../../src/server/process/log-manager.js';
import { openRegister } from '../../../../src/server/witnessing/register/open-register.js';
import { type App, type AppOptions, startApp } from '../../../support/app.js';
import { type Admin, adminOf } from '../../../support/calling/admin.js';
import { type Ended, runHere } from '../../../support/calling/run-cli.js';
import { until } from '../../../support/until.js';
import { CLIENTS } from './clients.js';

/** What tests of TUF have. */
export type Scene = {
  app: App;
  admin: Admin;
  mirrorURL: string;
  /** The path of a file of the operator. */
  file: (name: string) => string;
  /** `attest tuf`, confirmed. */
  tuf: (...args: string[]) => Promise<Ended>;
  /** The same, which must end well. */
  done: (...args: string[]) => Promise<Ended>;
  /** Updates every client, each of which has the folder of this name. @returns what each has then */
  update: (folder: string, mirrorURL?: string) => Promise<Record<string, string>>;
  /** Starts a new epoch of the live log with another key, and waits until the trust roots have it. */
  replaceLogKey: () => Promise<void>;
};

/** Starts a service with two online keys, without a repository. */
export async function openTuf(t: Test, options: AppOptions = {}): Promise<Scene> {
  const dir = t.testdir({});
  const file = (name: string) => join(dir, name);
  for (const name of ['online.pem', 'online-2.pem']) writeFileSync(file(name), newKeyPem());
  const app = await startApp(t, {
    ...options,
    env: { TUF_KEY_FILE: `${file('online.pem')},${file('online-2.pem')}` },
  });
  const admin = adminOf(app);
  const env = { ATTEST_URL: app.baseUrl, ATTEST_ADMIN_TOKEN: admin.token };
  const tuf: Scene['tuf'] = (command = '', ...args) =>
    runHere(['tuf', command, ...args, ...(command === 'status' ? [] : ['--yes'])], { env });
  const mirrorURL = `${app.verifyUrl}/tuf`;
  return {
    app,
    admin,
    mirrorURL,
    file,
    tuf,
    done: async (...args) => {
      const ended = await tuf(...args);
      if (ended.code !== 0) throw new Error(ended.stderr);
      return ended;
    },
    update: async (folder, url = mirrorURL) => {
      const place = { mirrorURL: url, rootPath: file('root.json') };
      const entries = Object.entries(CLIENTS).map(async ([name, update]) => {
        const cachePath = file(join(folder, encodeURIComponent(name)));
        mkdirSync(cachePath, { recursive: true });
        const outcome = await update({ ...place, cachePath }).catch(
          (error: Error) => `rejected: ${inspect(error)}`,
        );
        return [name, outcome];
      });
      return Object.fromEntries(await Promise.all(entries));
    },
    replaceLogKey: async () => {
      const logs = logManager(app.pool, await openRegister(app.config.checkpointRegister));
      const { publicKey } = generateKeyPairSync('ed25519');
      const { origin } = await logs.newEpoch('live', { publicKey: rawEd25519PublicKey(publicKey) });
      await until('the trust roots have the new log', async () =>
        (await (await fetch(`${app.verifyUrl}/trusted_root.json`)).text()).includes(origin),
      );
    },
  };
}

function newKeyPem(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
