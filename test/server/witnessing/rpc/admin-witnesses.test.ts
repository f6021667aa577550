/** The operator sees how the witnesses stand, and has one asked. */
import t from 'tap';
import { AuditAction, AuditService } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { LogService } from '../../../../gen/attestation/admin/v1/logs_pb.js';
import { WitnessService } from '../../../../gen/attestation/admin/v1/witnesses_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../../support/app.js';
import { adminOf } from '../../../support/calling/admin.js';
import { runHere } from '../../../support/calling/run-cli.js';
import { newBrowser, signedIn } from '../../../support/calling/sessions.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { until } from '../../../support/until.js';
import { submitWitnessed } from '../../rpc/submitting.js';

const { listWitnesses, askWitness } = WitnessService.method;
const { listLogs } = LogService.method;
const app = await startApp(t, { witnesses: ['one', 'two'] });
const admin = adminOf(app);
const owner = await newKey(app);

type Standing = Record<string, unknown> & { name: string; log: string };

async function standings(): Promise<Standing[]> {
  return (await admin.ask(listWitnesses, {})).data as Standing[];
}

const attest = (...args: string[]) =>
  runHere(['witnesses', ...args], { env: { ATTEST_URL: app.baseUrl, ATTEST_ADMIN_TOKEN: admin.token } });

t.test('each witness has its coverage, last success and next attempt for each log', async (t) => {
  await submitWitnessed(app, owner);
  const live = (await standings()).filter(({ log }) => log.startsWith('live.'));
  t.same(
    live.map(({ name }) => name),
    ['one', 'two'],
  );
  const [row] = await app.pool`SELECT max(tree_size) AS size FROM batch WHERE log_id = 1`;
  const size = String(row?.size);
  for (const standing of live) {
    t.match(standing, { coveredTreeSize: size, publishedTreeSize: size });
    t.match(standing, {
      environment: 'ENVIRONMENT_LIVE',
      kind: 'WITNESS_KIND_RFC3161',
      required: true,
      lastSuccessAt: /Z$/,
      nextAttemptAt: /Z$/,
    });
  }
  const { code, stdout } = await attest('list');
  t.equal(code, 0);
  t.match(
    stdout,
    /^NAME +LOG +REQUIRED .*\none +live\.\S+ +yes +\d+ of \d+ +\d{4}-\S+Z +0 +at the next checkpoint\n/,
  );
});

t.test('each log with its checkpoint, and how it has grown', async (t) => {
  type Sized = { origin: string; treeSize: string; checkpoint: string; sizes: { treeSize: string }[] };
  const logs = async (input = {}) => (await admin.ask(listLogs, input)).data as Sized[];
  const [live, test] = await logs();
  t.match([live?.origin, test?.origin], [/^live\./, /^test\./]);
  const batches = await app.pool<{ size: number }[]>`
    SELECT tree_size AS size FROM batch WHERE log_id = 1 AND registered_at IS NOT NULL ORDER BY 1`;
  const sizes = batches.map(({ size }) => String(size));
  t.same(
    live?.sizes.map(({ treeSize }) => treeSize),
    sizes,
  );
  t.equal(live?.treeSize, sizes.at(-1));
  t.match(live?.checkpoint, new RegExp(`^${live?.origin}\\n${live?.treeSize}\\n`));
  t.match(test, { epoch: 1, sizes: undefined, checkpoint: undefined }, 'nothing is sealed in it');
  const [few] = await logs({ environment: Environment.LIVE, sizes: 2 });
  t.equal(few?.sizes.length, 2);
  t.equal(few?.sizes.at(-1)?.treeSize, sizes.at(-1), 'the newest is among few');
});

t.test('a project sees the class of a failure, the operator the error itself', async (t) => {
  const tenant = await signedIn(app, owner);
  const errors = async ({ call }: Pick<typeof tenant, 'call'>) => {
    const { response } = await call(listWitnesses, {});
    return (response.data as Standing[]).map(({ lastError }) => lastError);
  };
  const operator = newBrowser(app, { 'attest-project': owner.projectId });
  await operator.signIn({ credential: { case: 'adminToken', value: admin.token } });
  const secret = 'tsa.internal:8080 cannot be asked: ECONNREFUSED';
  for (const [stored, shown] of [
    ['unreachable', 'the witness cannot be reached, or did not answer in time'],
    ['contradiction', 'the witness contradicts the log, and the operator is alarmed'],
    ['toString', 'the request to the witness failed'],
    [null, 'the request to the witness failed'],
  ] as const) {
    await app.pool`UPDATE witness_state SET last_error = ${secret}, last_error_class = ${stored}`;
    t.same([...new Set(await errors(tenant))], [shown]);
    t.same([...new Set(await errors(operator))], [secret]);
  }
  await app.pool`UPDATE witness_state SET last_error = NULL`;
  t.same([...new Set(await errors(tenant))], [undefined]);
});

t.test('a witness in backoff is requested at once, with an audit entry', async (t) => {
  await app.pool`
    UPDATE witness_state SET failures = 9, covers_tree_size = 0, last_error = 'a test',
                             next_attempt_at = clock_timestamp() + interval '1 hour' WHERE log_id = 1`;
  t.match((await attest('list')).stdout, /\none .* 0 of \d+ .* 9 +\d{4}-\S+Z +a test\n/);
  const asked = JSON.parse((await attest('ask', 'one', '--json')).stdout) as Standing[];
  t.match(asked[0], { name: 'one', environment: 'live' });
  const size = String(asked[0]?.published_tree_size);
  await until('it has vouched', async () =>
    (await standings()).every(
      ({ name, log, coveredTreeSize }) =>
        name !== 'one' || !log.startsWith('live.') || coveredTreeSize === size,
    ),
  );
  const { data } = await admin.ask(AuditService.method.listAuditEntries, {
    action: AuditAction.WITNESS_ASKED,
  });
  t.match(data, [{ action: 'AUDIT_ACTION_WITNESS_ASKED', resourceId: 'one' }]);
});

t.test('a name in no policy is reported', async (t) => {
  t.match(await admin.call(askWitness, { name: 'nobody' }), { code: 'witness.not_found', grpcCode: 5 });
  t.match(await attest('ask', 'nobody'), { code: 1, stderr: /witness\.not_found/ });
});
