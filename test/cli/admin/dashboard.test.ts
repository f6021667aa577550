/** `attest dashboard`: sessions are listed and ended. */
import t from 'tap';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { signedIn } from '../../support/calling/sessions.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { startAdmin } from './admin-commands.js';

const { app, attest, json } = await startAdmin(t);

t.test('sessions of the dashboard are listed, and ended one by one', async (t) => {
  const { id: projectId = '' } = await json('projects', 'create', 'sessions');
  t.match(await attest('dashboard', 'sessions', '--project', projectId), {
    code: 0,
    stdout: 'no sessions\n',
  });
  const browser = await signedIn(app, { projectId, environment: Environment.LIVE });
  const [{ id = '', link_id = '' } = {}] = await json<Record<string, string>[]>('dashboard', 'sessions');
  const row = `${id}  ${projectId}  ${link_id}  (\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\dZ *){3}`;
  const { stdout } = await attest('dashboard', 'sessions', '--project', projectId);
  t.match(stdout, new RegExp(`^ID +PROJECT +LINK +STARTED +LAST USE +ENDS\\n${row}\\n$`));
  t.match(await attest('dashboard', 'sessions', '--operator'), { code: 0, stdout: 'no sessions\n' });
  t.match(await attest('dashboard', 'sessions', '--operator', '--project', projectId), {
    code: 2,
    stderr: /--operator.*--project/,
  });
  t.match(await attest('dashboard', 'end', id), { code: 0, stdout: `${id} was ended\n` });
  t.equal((await browser.call(SessionService.method.getSession, {})).status, 401);
  t.match(await attest('dashboard', 'end', id), {
    code: 1,
    stderr: /there is no such session, or it has ended/,
  });
});

t.test('nothing secret was logged', async (t) => {
  assertNoLeaks(t, app.recorder);
});
