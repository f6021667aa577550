import { join } from 'node:path';
import t from 'tap';
import { creation } from '../../server/rpc/samples.js';
import { startApp } from '../../support/app.js';
import { runHere } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

/** The parts of a bundle that are forged. */
type Forgeable = {
  sigstore_bundle: {
    dsseEnvelope: { signatures: [{ sig: string }] };
    verificationMaterial: { tlogEntries: [{ logIndex: string; inclusionProof: { logIndex: string } }] };
  };
};

t.test('the log of a service matches its batches and bundles', async (t) => {
  const app = await startApp(t);
  const { key } = await newKey(app);
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { json } = await app.rest('/v1/attestations', {
      method: 'POST',
      apiKey: key,
      body: creation(`${i}`.repeat(64)),
    });
    ids.push(String(json.id));
    await untilWitnessed(app.pool);
  }
  const bodies = await Promise.all(
    ids.map(async (id) => (await app.rest(`/v1/attestations/${id}/bundle`, { apiKey: key })).body),
  );
  const folder = t.testdir({ 'first.json': bodies[0] ?? '', 'bundle.json': bodies[2] ?? '' });
  const bundle = join(folder, 'bundle.json');
  const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: key };
  const { code, stdout, stderr } = await runHere(['audit', '--batches', '--bundle', bundle, '--json'], {
    env,
  });
  t.match({ code, stderr }, { code: 0, stderr: '' });
  t.match(await runHere(['audit', app.baseUrl]), {
    code: 0,
    stdout: /^Trusting \S+\/verify\/trust_roots\.json/m,
  });
  const [live, test] = JSON.parse(stdout).logs;
  t.match(live, {
    environment: 'live',
    tree_size: 3,
    entries_read: 3,
    checkpoints_confirmed: 4,
    problems: [],
  });
  t.match(test, { environment: 'test', tree_size: 0, problems: [] });

  await t.test('parts that an audit did not read are not reported as correct', async (t) => {
    const audit = (...flags: string[]) => runHere(['audit', ...flags], { env });
    const state = ['--state', join(folder, 'state.json')];
    t.match(await audit(...state, '--bundle', join(folder, 'first.json')), { code: 0 });
    t.match(await audit(...state, '--bundle', bundle, '--batches'), { code: 0 });
    t.match(
      await audit(...state, '--bundle', join(folder, 'first.json')),
      { code: 0, stdout: '3 entries, 0 read now; its root and that of 2 more checkpoints follow' },
      'the consistency proof from it is made of the tiles of the log',
    );
    t.match(await audit('--environment', 'test', '--bundle', bundle), {
      code: 2,
      stdout: '',
      stderr: /is of the log live\.log\.example\.com, which is not among those to audit/,
    });
  });

  await t.test('local statements are matched to leaves, and their signatures verified', async (t) => {
    const forge = (change: (bundle: Forgeable) => void) => {
      const bundle = JSON.parse(String(bodies[1])) as Forgeable;
      change(bundle);
      return JSON.stringify(bundle);
    };
    const forged = ({ sigstore_bundle: { dsseEnvelope } }: Forgeable) => {
      const signature = Buffer.from(dsseEnvelope.signatures[0].sig, 'base64');
      dsseEnvelope.signatures[0].sig = signature.fill(1, 10, 20).toString('base64');
    };
    const files = t.testdir({
      all: {
        'a.json': bodies[0] ?? '',
        deeper: { 'b.bundle': bodies[1] ?? '', 'manifest.json': '{}', 'notes.txt': 'x' },
        'lines.jsonl': `${JSON.stringify({ submission: {}, bundle: JSON.parse(String(bodies[2])) })}\n`,
      },
      'forged.json': forge(forged),
      'moved.json': forge(({ sigstore_bundle: { verificationMaterial } }) => {
        const [moved] = verificationMaterial.tlogEntries;
        moved.logIndex = '2';
        moved.inclusionProof.logIndex = '2';
      }),
      'none.json': '{}',
    });
    const audit = (...flags: string[]) => runHere(['audit', '--environment', 'live', ...flags], { env });
    const statements = (name: string) => ['--statements', join(files, name)];
    t.match(await audit(...statements('all')), { code: 0, stderr: '' });
    t.match(await audit(...statements('forged.json')), {
      code: 1,
      stdout: /entry 1 is the leaf of the statement in .*forged\.json: its signature is not valid/,
    });
    t.match(await audit(...statements('moved.json')), {
      code: 1,
      stdout: /entry 2 is not the leaf of the statement in .*moved\.json/,
    });
    t.match(await audit(...statements('none.json')), { code: 2, stderr: /none\.json is not a bundle/ });
    const state = ['--state', join(files, 'state.json')];
    t.match(await audit(...state), { code: 0 });
    t.match(await audit(...state, ...statements('all')), {
      code: 2,
      stdout: /not compared: 3 of the statements are of entries that an earlier audit has read/,
    });
  });
});
