/** Settings under which an acknowledgement would not wait for the synchronous standby are refused at start. */
import t from 'tap';
import { runProcess } from '../../support/calling/run-cli.js';
import { makeInstallation } from '../../support/servers/installation.js';
import { testServers } from '../../support/servers/shared-servers.js';
import { startStandbyPair } from '../../support/standby/standby-pair.js';

t.test('no process starts whose commits would not wait for the standby', async (t) => {
  const pair = await startStandbyPair(t);
  const { natsUrl } = await testServers();
  const { env } = await makeInstallation(t, { servers: { databaseUrl: pair.url, natsUrl } });
  for (const value of ['local', 'off']) {
    await pair.primary.unsafe(`ALTER DATABASE attest SET synchronous_commit = '${value}'`);
    for (const role of ['api', 'worker']) {
      const ended = await runProcess([role, '--ops-port', '0'], { ...env, PORT: '0' });
      const stderr = new RegExp(
        `^error: synchronous_commit is ${value} for this database.*; set it to on\n$`,
      );
      t.match(ended, { code: 1, stdout: '', stderr }, `${role} with ${value}`);
    }
  }
});
