/** Who may send a process signals must not get to run code in it. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { encodeVerifierKey, noteKey } from '../../src/proof/log/note.js';
import { PROGRAM } from '../support/calling/run-cli.js';
import { writeWitnessKeys } from '../support/servers/witness-process.js';

t.test("SIGUSR1 does not open Node's inspector", async (t) => {
  const { settings } = await writeWitnessKeys(t.testdir(), 'witness.example.com');
  const logs = { WITNESS_LOGS: encodeVerifierKey(noteKey('log.example.com', randomBytes(32))) };
  const env = { PATH: process.env.PATH, PORT: '0', OPS_PORT: '0', ...settings, ...logs };
  const args = ['--inspect-port=0', ...PROGRAM, 'witness', '--json'];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  const stderr = text(child.stderr);
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const { ops_url: opsUrl } = JSON.parse(line) as { ops_url: string };
  child.kill('SIGUSR1');
  // The inspector announces itself before the process handles anything else.
  t.equal((await fetch(`${opsUrl}/livez`)).status, 200);
  child.kill('SIGTERM');
  t.same(await once(child, 'close'), [0, null]);
  t.notMatch(await stderr, /debugger|inspector/i);
});
