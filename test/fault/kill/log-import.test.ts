/** `attest log import` killed by SIGKILL at its commit: before it nothing is there, after it all is. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import { AuditAction, AuditActorKind } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { makeSource, ORIGIN, startTarget } from '../../support/archives/archived-log.js';
import { type Break, startProxy } from '../../support/breaking/proxy.js';
import { commitOf } from '../../support/breaking/statement-matchers.js';
import { PROGRAM } from '../../support/calling/run-cli.js';
import { untilGone } from '../../support/wait-for-idle.js';

const source = await makeSource(t);
const folder = join(t.testdir(), 'archive');
await source.run('log', 'archive', ORIGIN, '--to', folder);
const target = await startTarget(t, source);
const { pool, config } = target.app;
const url = new URL(config.databaseUrl ?? '');
const proxy = await startProxy({ host: url.hostname, port: Number(url.port) });
t.teardown(() => proxy.close());
url.hostname = '127.0.0.1';
url.port = String(proxy.port);
const env = {
  PATH: process.env.PATH,
  ...target.keys,
  DATABASE_URL: url.href,
  CHECKPOINT_REGISTER: source.app.register,
};

/** What an import changes. */
async function readState() {
  const [state] = await pool`
    SELECT (SELECT json_agg(l ORDER BY l.id) FROM log l) AS logs, (SELECT json_agg(k ORDER BY k.id) FROM dsse_key k) AS keys,
      (SELECT json_agg(p ORDER BY p.environment, p.version) FROM policy p) AS policies,
      (SELECT json_agg(s ORDER BY s.log_id, s.witness) FROM witness_state s) AS witnesses,
      (SELECT count(*) FROM timestamp_authority) AS authorities, (SELECT count(*) FROM trusted_witness) AS trusted,
      (SELECT count(*) FROM project) AS projects, (SELECT count(*) FROM submission) AS submissions,
      (SELECT count(*) FROM signature_stamp) AS stamps, (SELECT count(*) FROM submission_statement) AS statements,
      (SELECT count(*) FROM batch) AS batches, (SELECT count(*) FROM evidence) AS evidence, (SELECT count(*) FROM tile) AS tiles,
      (SELECT count(*) FROM audit_entry) AS entries`;
  return state;
}

async function killedAtCommit(when: Break): Promise<void> {
  const held = proxy.holdNext(when, commitOf('INSERT INTO audit_entry'));
  const child = spawn(process.execPath, [...PROGRAM, 'log', 'import', ORIGIN, '--from', folder], {
    env,
    stdio: 'ignore',
  });
  const exited = once(child, 'exit');
  await held;
  child.kill('SIGKILL');
  await exited;
  proxy.cut();
  await untilGone(pool, '^attest tool$');
}

t.test('before the commit it has left nothing', async (t) => {
  const before = await readState();
  await killedAtCommit('before the request arrives');
  t.same(await readState(), before);
});

t.test('after the commit all is there, with an audit entry, and the next run changes nothing', async (t) => {
  await killedAtCommit('before the answer arrives');
  const after = await readState();
  t.match(after, { submissions: 13, projects: 2 });
  t.same(
    await pool`SELECT project_id, actor_kind, actor_id, resource_id, detail FROM audit_entry WHERE action = ${AuditAction.LOG_IMPORTED}`,
    [
      {
        project_id: null,
        actor_kind: AuditActorKind.ADMIN,
        actor_id: 'cli',
        resource_id: ORIGIN,
        detail: { leaves: 13, projects: 2, new_projects: 2 },
      },
    ],
  );
  t.match(await target.run('log', 'import', ORIGIN, '--from', folder), {
    code: 1,
    stderr: /already, with leaves/,
  });
  t.same(await readState(), after);
  t.match(await target.run('backup', 'verify', '--verify-url', target.app.verifyUrl, '--json'), {
    code: 0,
    stderr: '',
  });
});
