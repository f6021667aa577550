import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { encodeEntries } from '../../../src/proof/log/entries.js';
import { makeService } from '../../proof/sample.js';
import { runHere } from '../../support/calling/run-cli.js';
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

t.test('a log that only grows is intact, and each audit resumes where the last one ended', async (t) => {
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

t.test('a log that was truncated, rewritten or served unlike its checkpoint is detected', async (t) => {
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

t.test('a state file that cannot be written is named, and the exit code is 2', async (t) => {
  const { show, audit } = await publish(t);
  show(ENTRIES);
  const { code, stderr } = await audit('--state', join(t.testdir(), 'gone', 'state.json'));
  t.match({ code, stderr }, { code: 2, stderr: /^error: .*gone.state\.json cannot be locked: ENOENT/ });
});

t.test('an audit that cannot be completed ends with exit code 2 and the reason', async (t) => {
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
  t.match(await runHere(['audit', `${url}/elsewhere`]), {
    code: 2,
    stderr:
      /fetched from \S+\/elsewhere\/trust_roots\.json: HTTP 404, nor from \S+\/verify\/trust_roots\.json: give/,
  });
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
