/** A service, and commands with its admin token. */
import type { Test } from 'tap';
import { startApp } from '../../support/app.js';
import { adminOf } from '../../support/calling/admin.js';
import { runHere } from '../../support/calling/run-cli.js';

/** Starts a service until the test ends. */
export async function startAdmin(t: Test) {
  const app = await startApp(t);
  const { token } = adminOf(app);
  const env = { ATTEST_URL: app.baseUrl, ATTEST_ADMIN_TOKEN: token, DATA_DIR: '/nowhere' };

  /** Runs a command with the admin token. */
  function attest(...args: string[]) {
    return runHere(args, { env });
  }

  /** The same, of which the test expects JSON. */
  async function json<T = Record<string, string>>(...args: string[]): Promise<T> {
    const { code, stdout, stderr } = await attest(...args, '--json');
    if (code !== 0) throw new Error(`attest ${args.join(' ')}: ${stderr}`);
    const answer = JSON.parse(stdout);
    if (typeof answer.secret === 'string') app.recorder.secrets.add(answer.secret);
    return answer;
  }

  /** Whether the service accepts a key. */
  function works(key: string | undefined): Promise<boolean> {
    return app.rest('/v1/service/me', { apiKey: key }).then(({ status }) => status === 200);
  }

  return { app, env, attest, json, works };
}
