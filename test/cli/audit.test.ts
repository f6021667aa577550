import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { TrustRootsSchema } from '../../gen/attestation/v1/service_pb.js';
import { utf8 } from '../../src/proof/bytes/encoding.js';
import { signCheckpoint } from '../../src/proof/log/checkpoint.js';
import { encodeEntries } from '../../src/proof/log/entries.js';
import { leafHash, rootOfLeafHashes } from '../../src/proof/log/merkle.js';
import { TILE_WIDTH, tilePath } from '../../src/proof/log/tile-path.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../src/proof/statement/dsse.js';
import { leafOf } from '../../src/proof/statement/leaf.js';
import { restJson } from '../proof/rest-json.js';
import { makeService, makeTrustRoots, type Service } from '../proof/sample.js';
import { creation } from '../server/rpc/samples.js';
import { startApp } from '../support/app.js';
import { listen } from '../support/rpc-server.js';
import { runHere } from '../support/run-cli.js';
import { newKey } from '../support/test-keys.js';
import { untilWitnessed } from '../support/wait-for-idle.js';

const dir = t.testdir();
const service = await makeService(join(dir, 'service'));
const stranger = await makeService(join(dir, 'stranger'));

function entry(by: Service, i: number): Uint8Array {
  const signed = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, utf8(`statement ${i}`));
  return leafOf(signed, by.dsse.sign(signed), by.dsse.publicKey).record;
}

const ENTRIES = Array.from({ length: 600 }, (_, i) => entry(service, i));

/** A published log whose every part can be put wrong. */
async function publish(t: Test) {
  const files = new Map<string, Uint8Array>();
  const status = new Map<string, number>();
  const server = createServer((request, response) => {
    const path = String(request.url).slice(1);
    const bytes = files.get(path);
    response.writeHead(status.get(path) ?? (bytes ? 200 : 404)).end(bytes);
  });
  const url = await listen(t, server);
  const roots = makeTrustRoots(service);
  for (const log of roots.transparencyLogs) log.url = `${url}/log`;
  files.set('trust_roots.json', utf8(JSON.stringify(restJson(TrustRootsSchema, roots))));
  const show = (entries: readonly Uint8Array[], { by = service, size = entries.length } = {}) => {
    const rootHash = rootOfLeafHashes(entries.slice(0, size).map(leafHash));
    files.set('log/checkpoint', utf8(signCheckpoint({ origin: service.origin, size, rootHash }, by.log)));
    for (let index = 0; index * TILE_WIDTH < entries.length; index++) {
      const records = entries.slice(index * TILE_WIDTH, (index + 1) * TILE_WIDTH);
      files.set(
        `log/${tilePath({ level: 'entries', index, width: records.length })}`,
        encodeEntries(records),
      );
    }
  };
  const state = join(t.testdir(), 'state.json');
  const audit = (...more: string[]) => runHere(['audit', '--verify-url', url, '--state', state, ...more]);
  return { url, files, status, show, audit, state };
}

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
      /the first 600 entries have the root .*, but the checkpoint it shows now says/,
    ],
    [
      'another of the same size',
      ({ show }) => show(rewritten.slice(0, 300)),
      /the first 300 entries have the root/,
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
  for (const [name, change, problem] of table) {
    await t.test(name, async (t) => {
      const log = await publish(t);
      log.show(ENTRIES.slice(0, 300));
      t.equal((await log.audit()).code, 0);
      const before = await readFile(log.state, 'utf8');
      change(log);
      const { code, stdout } = await log.audit();
      t.equal(code, 1);
      t.match(stdout, /^FAILED {2}live\.log\.example$/m);
      t.match(stdout, problem);
      t.equal(await readFile(log.state, 'utf8'), before, 'what was seen before is not forgotten');
    });
  }
});

t.test('a state that cannot be written is told by its name, and ends with 2', async (t) => {
  const { show, audit } = await publish(t);
  show(ENTRIES);
  const { code, stderr } = await audit('--state', join(t.testdir(), 'gone', 'state.json'));
  t.match({ code, stderr }, { code: 2, stderr: /^error: .*gone.state\.json cannot be written: ENOENT/ });
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
    t.match(await audit(...state, '--bundle', join(folder, 'first.json')), {
      code: 2,
      stdout: '',
      stderr: /^error: the checkpoint of size 1 in the bundle .*first\.json is older than the last audit/,
    });
    t.match(await audit('--environment', 'test', '--bundle', bundle), {
      code: 2,
      stdout: '',
      stderr: /is of the log live\.log\.example\.com, which is not among those to audit/,
    });
  });
});
