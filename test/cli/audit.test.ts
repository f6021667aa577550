import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { utf8 } from '../../src/proof/bytes/encoding.js';
import { encodeEntries } from '../../src/proof/log/entries.js';
import { makeService } from '../proof/sample.js';
import { creation } from '../server/rpc/samples.js';
import { startApp } from '../support/app.js';
import { runHere } from '../support/run-cli.js';
import { newKey } from '../support/test-keys.js';
import { untilWitnessed } from '../support/wait-for-idle.js';
import { entry, publishLog } from './published-log.js';

const dir = t.testdir();
const service = await makeService(join(dir, 'service'));
const stranger = await makeService(join(dir, 'stranger'));

const ENTRIES = Array.from({ length: 600 }, (_, i) => entry(service, i));

/** A published log, and audits of it with a state of its own. */
async function publish(t: Test) {
  const log = await publishLog(t, service);
  const state = join(t.testdir(), 'state.json');
  const audit = (...more: string[]) => runHere(['audit', '--verify-url', log.url, '--state', state, ...more]);
  return { ...log, audit, state };
}

/** The parts of a bundle that are forged. */
type Forgeable = {
  sigstore_bundle: {
    dsseEnvelope: { signatures: [{ sig: string }] };
    verificationMaterial: { tlogEntries: [{ logIndex: string; inclusionProof: { logIndex: string } }] };
  };
};

t.test('a log that only grows is intact, and each audit goes on where the last one ended', async (t) => {
  const { show, audit, files, state } = await publish(t);
  t.match(await audit(), { code: 0, stdout: 'ok      live.log.example: the log is empty\n' });
  show(ENTRIES.slice(0, 300));
  t.match(await audit(), {
    code: 0,
    stderr: '',
    stdout: /^ok {6}live\.log\.example: 300 entries, 300 read now; its root follows/,
  });
  show(ENTRIES);
  files.delete('log/tile/entries/000');
  const { code, stdout } = await audit('--json');
  t.equal(code, 0);
  t.match(JSON.parse(stdout), {
    verdict: 'intact',
    logs: [
      {
        origin: service.origin,
        environment: 'live',
        tree_size: 600,
        entries_read: 300,
        checkpoints_confirmed: 1,
      },
    ],
  });
  t.match(await audit(), { code: 0, stdout: '600 entries, 0 read now' });
  t.match(JSON.parse(await readFile(state, 'utf8')), {
    [service.origin]: { checkpoint: /^live\.log\.example\n600\n/ },
  });
});

t.test('a log that was cut, rewritten, or shown otherwise than it was signed is found out', async (t) => {
  const rewritten = ENTRIES.with(100, entry(service, 1_000));
  const table: [
    name: string,
    change: (log: Awaited<ReturnType<typeof publish>>) => unknown,
    problem: RegExp,
    code?: number,
  ][] = [
    [
      'cut',
      ({ show }) => show(ENTRIES.slice(0, 299)),
      /shows 299 entries now, and has signed that there are 300 \(the last audit\)/,
    ],
    ['emptied', ({ files }) => files.delete('log/checkpoint'), /shows 0 entries now/],
    [
      'rewritten and signed',
      ({ show }) => show(rewritten),
      /live\.log\.example has signed two checkpoints, of size 300 and 600, of which one is not the beginning of the other/,
      3,
    ],
    [
      'another of the same size',
      ({ show }) => show(rewritten.slice(0, 300)),
      /live\.log\.example has signed two checkpoints of size 300 with different roots: the last audit and the checkpoint it shows now/,
      3,
    ],
    [
      'signed by a stranger',
      ({ show }) => show(ENTRIES, { by: stranger }),
      /a checkpoint is not signed by its log/,
    ],
    [
      'of another key of statements',
      ({ show }) => show([...ENTRIES, entry(stranger, 600)]),
      /entry 600 names a key that the trust roots do not/,
    ],
    ['an entry that is none', ({ show }) => show([...ENTRIES, utf8('{}')]), /entry 600 is no leaf record/],
    [
      'an entry less than signed',
      ({ show, files }) => {
        show(ENTRIES);
        files.set('log/tile/entries/002.p/88', encodeEntries(ENTRIES.slice(512, 599)));
      },
      /holds 87 entries, not 88/,
    ],
    [
      'cut off',
      ({ show, files }) => {
        show(ENTRIES);
        files.set('log/tile/entries/001', encodeEntries(ENTRIES.slice(256, 512)).slice(0, -1));
      },
      /an entry bundle ends inside an entry/,
    ],
    [
      'a bundle away',
      ({ show, files }) => {
        show(ENTRIES);
        files.delete('log/tile/entries/001');
      },
      /it has no tile\/entries\/001, which its checkpoint covers/,
    ],
    ['no checkpoint', ({ files }) => files.set('log/checkpoint', utf8('<html>')), /./],
  ];
  for (const [name, change, problem, expected = 1] of table) {
    await t.test(name, async (t) => {
      const log = await publish(t);
      log.show(ENTRIES.slice(0, 300));
      t.equal((await log.audit()).code, 0);
      const before = await readFile(log.state, 'utf8');
      change(log);
      const { code, stdout } = await log.audit();
      t.equal(code, expected);
      t.match(stdout, /^FAILED {2}live\.log\.example$/m);
      t.match(stdout, problem);
      t.equal(await readFile(log.state, 'utf8'), before, 'what was seen before is not forgotten');
    });
  }
});

t.test('a terminal shows a bar while entries are read', async (t) => {
  const { show, url } = await publish(t);
  show(ENTRIES);
  const { code, stderr } = await runHere(['audit', url], { terminal: 100 });
  t.equal(code, 0);
  t.match(stderr, /reading live\.log\.example \[#+\.+\] {2}\d\d% {2}256 of 600/);
  t.ok(stderr.endsWith('\r\x1b[K'), 'and erases it');
});

t.test('a state that cannot be written is told by its name, and ends with 2', async (t) => {
  const { show, audit } = await publish(t);
  show(ENTRIES);
  const { code, stderr } = await audit('--state', join(t.testdir(), 'gone', 'state.json'));
  t.match({ code, stderr }, { code: 2, stderr: /^error: .*gone.state\.json cannot be locked: ENOENT/ });
});

t.test('what cannot be checked ends with 2 and says why', async (t) => {
  const { show, audit, status, url } = await publish(t);
  show(ENTRIES);
  status.set('log/tile/entries/001', 403);
  t.match(await audit(), {
    code: 2,
    stdout: '',
    stderr: /^error: entries cannot be fetched from .*: HTTP 403/,
  });
  status.set('trust_roots.json', 404);
  t.match(await audit(), { code: 2, stderr: /^error: trust roots cannot be fetched/ });
  const folder = t.testdir({
    'no-json': '{',
    other: '{"live.log.example":{"checkpoint":"x","subtrees":[]}}',
    gone: {},
  });
  status.delete('trust_roots.json');
  for (const [flags, message] of [
    [['--state', join(folder, 'no-json')], /^error: .* cannot be read/],
    [['--state', join(folder, 'other')], /^error: the state of live\.log\.example is damaged/],
    [['--bundle', join(folder, 'no-json')], /^error: .* is not a bundle/],
    [['--bundle', join(folder, 'missing')], /^error: .* cannot be read/],
    [['--environment', 'test'], /^error: the trust roots have no such log/],
  ] as const) {
    t.match(await runHere(['audit', '--verify-url', url, ...flags]), {
      code: 2,
      stdout: '',
      stderr: message,
    });
  }
});

t.test('the log of a service holds what its batches and bundles say', async (t) => {
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
  const [live, test] = JSON.parse(stdout).logs;
  t.match(live, {
    environment: 'live',
    tree_size: 3,
    entries_read: 3,
    checkpoints_confirmed: 4,
    problems: [],
  });
  t.match(test, { environment: 'test', tree_size: 0, problems: [] });

  await t.test('and what of them an audit does not come upon is not passed off as right', async (t) => {
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

  await t.test('the statements at hand are found, and their signatures verified', async (t) => {
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
