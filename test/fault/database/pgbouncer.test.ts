/** PgBouncer before the database of the service: in no mode does it take the settings of sessions. */
import t from 'tap';
import { sessionSettings } from '../../../src/server/database/session-settings.js';
import { startPgBouncer } from '../../support/breaking/pooler.js';
import { runProcess } from '../../support/calling/run-cli.js';
import { makeInstallation } from '../../support/servers/installation.js';

const IGNORED = Object.keys(sessionSettings({ statementTimeoutMs: 1, commitsLocally: true }));
/** What a process says by whether the pooler refuses the settings, as it is installed, or drops them. */
const CASES = [
  {
    ignored: [],
    stderr:
      /^error: the database cannot be reached: unsupported startup parameter: \w+; this is a pooler, such as PgBouncer, which cannot be used in any mode: connect to Postgres itself\n$/,
  },
  {
    ignored: IGNORED,
    stderr:
      /^error: the database's sessions do not have the settings they were opened with: .*statement_timeout is 0 and not \d+.*\(PgBouncer, in any mode: connect to Postgres itself\)\n$/,
  },
];
const MODES = { session: ['api', 'worker', 'migrate'], transaction: ['api'], statement: ['worker'] } as const;

for (const mode of ['session', 'transaction', 'statement'] as const) {
  t.test(`through PgBouncer in mode ${mode} no process starts, and the error advises`, async (t) => {
    const installation = await makeInstallation(t);
    for (const { ignored, stderr } of CASES) {
      const DATABASE_URL = await startPgBouncer(t, installation.databaseUrl, { mode, ignored });
      for (const role of MODES[mode]) {
        const args = [role, ...(role === 'migrate' ? [] : ['--ops-port', '0'])];
        const ended = await runProcess(args, { ...installation.env, DATABASE_URL, PORT: '0' });
        t.match(ended, { code: 1, stdout: '', stderr }, role);
      }
    }
  });
}
