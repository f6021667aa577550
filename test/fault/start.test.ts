/** Processes that cannot start: they say why in one line, and end. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { runProcess } from '../support/run-cli.js';
import { testDatabase, testServers } from '../support/servers.js';
import { makeInstallation } from '../support/service.js';

const databaseUrl = await testDatabase(t);
const installation = await makeInstallation(t, { databaseUrl, natsUrl: (await testServers()).natsUrl });
await (await installation.startWorker()).stop();
const dir = t.testdir();

function newKey(name: string, type: 'ec' | 'ed25519'): string {
  const { privateKey } =
    type === 'ec' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519');
  const file = join(dir, name);
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  return file;
}

t.test(
  'a process whose settings do not fit the database ends with 1 and one line that says so',
  async (t) => {
    const [live, test] = (installation.env.DSSE_KEY_FILE ?? '').split(',');
    const swapped = `live=${test?.slice('test='.length)},test=${live?.slice('live='.length)}`;
    const logKeys = `live=${newKey('log-live.pem', 'ed25519')},test=${newKey('log-test.pem', 'ed25519')}`;
    const both = ['api', 'worker'];
    const cases: [roles: string[], env: Record<string, string>, line: RegExp][] = [
      [
        both,
        { LOG_DOMAIN: 'other.example.com' },
        /^error: LOG_DOMAIN cannot change: the log is live\.log\.example/,
      ],
      [
        both,
        { LOG_KEY_FILE: logKeys },
        /^error: LOG_KEY_FILE does not hold the key that the log live\.log\.example/,
      ],
      [
        both,
        { DATABASE_URL: await testDatabase(t, { empty: true }) },
        /^error: the database lacks 0001_log\.sql, .*: run attest migrate first\n$/,
      ],
      [
        both,
        { DATABASE_URL: 'postgres://nobody:hunter2@127.0.0.1:9/none' },
        /^error: the database cannot be reached: connect ECONNREFUSED 127\.0\.0\.1:9\n$/,
      ],
    ];
    for (const [roles, env, line] of cases) {
      for (const role of roles) {
        const ended = await runProcess([role, '--ops-port', '0'], { ...installation.env, PORT: '0', ...env });
        t.match(ended, { code: 1, stdout: '', stderr: line }, `${role} ${Object.keys(env)}`);
      }
    }
    const api = await installation.startApi();
    await api.stop();
    const env = { ...installation.env, PORT: '0', DSSE_KEY_FILE: swapped };
    const ended = await runProcess(['api', '--ops-port', '0'], env);
    t.match(ended, {
      code: 1,
      stderr: /^error: DSSE_KEY_FILE has the key of another environment for live\n$/,
    });
  },
);
