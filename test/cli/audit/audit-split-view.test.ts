import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { fromBase64, utf8 } from '../../../src/proof/bytes/encoding.js';
import { equalBytes } from '../../../src/proof/bytes/primitives.js';
import { openCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { verifyConsistency } from '../../../src/proof/log/merkle.js';
import { noteKey, parseVerifierKey } from '../../../src/proof/log/note.js';
import { runHere } from '../../support/calling/run-cli.js';
import { makeHistories, type NoteOptions, noteOver, type PublishedLog, publishLog } from './published-log.js';

const { service, stranger, entries: ENTRIES, fork: FORK } = await makeHistories(t);
const witness = service.cosigner;

/** A published log, and audits of it that keep evidence and no state unless it is named. */
async function publish(t: Test) {
  const log = await publishLog(t, service);
  const evidence = join(t.testdir(), 'evidence');
  const audit = (...more: string[]) => runHere(['audit', log.url, '--evidence', evidence, ...more]);
  return { ...log, evidence, audit };
}

/** What a third party can check of the only evidence, without trusting the auditor. */
async function checkEvidence(t: Test, evidence: string): Promise<void> {
  const [folder = '', ...others] = await readdir(evidence);
  t.strictSame(others, []);
  const read = (name: string) => readFile(join(evidence, folder, name), 'utf8');
  const facts = JSON.parse(await read('evidence.json'));
  const key = noteKey(service.origin, service.log.publicKey);
  t.strictSame(parseVerifierKey(facts.log_key), key);
  const first = await openCheckpoint(await read('first.note'), key);
  const second = await openCheckpoint(await read('second.note'), key);
  if (first.size === second.size) {
    t.notOk(equalBytes(first.rootHash, second.rootHash), 'one size has two roots');
    return;
  }
  const { tree_size: oldSize, root, consistency_proof: proof } = facts.prefix;
  const oldRoot = fromBase64(root);
  t.equal(oldSize, first.size);
  t.notOk(equalBytes(oldRoot, first.rootHash), 'the second tree has another root at the size of the first');
  const claim = { oldSize, oldRoot, newSize: second.size, newRoot: second.rootHash };
  t.ok(
    verifyConsistency(
      claim,
      proof.map((hash: string) => fromBase64(hash)),
    ),
    'which is proven',
  );
}

t.test('a mirror that shows another history is a split view, with both notes as evidence', async (t) => {
  const sizes: [name: string, log: number, mirror: number][] = [
    ['of the same size', 600, 600],
    ['of a smaller size', 600, 300],
    ['of a smaller size, a power of two', 600, 256],
    ['of a larger size', 600, 700],
  ];
  for (const [name, size, mirrored] of sizes) {
    await t.test(name, async (t) => {
      const { show, audit, url, evidence } = await publish(t);
      show(ENTRIES.slice(0, size));
      show(FORK.slice(0, mirrored), { folder: 'mirror' });
      const { code, stdout, stderr } = await audit('--mirror', `${url}/mirror`, '--json');
      t.equal(code, 3);
      const [alarm, report] = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      t.match(alarm, {
        event: 'alarm',
        kind: 'split_view',
        origin: service.origin,
        notes: [/^live/, /^live/],
      });
      t.match(report, { event: 'report', verdict: 'split_view', logs: [{ problems: [alarm.message] }] });
      t.equal(stderr, '');
      await checkEvidence(t, evidence);
    });
  }
});

t.test('two mirrors that contradict each other are a split view', async (t) => {
  const { show, audit, url, evidence } = await publish(t);
  show(ENTRIES);
  show(ENTRIES.slice(0, 300), { folder: 'a' });
  show(FORK.slice(0, 300), { folder: 'b' });
  const { code, stderr } = await audit('--mirror', `${url}/a`, '--mirror', `${url}/b`);
  t.equal(code, 3);
  t.match(
    stderr,
    /^ALARM {3}split_view live\.log\.example: .*the mirror .*\/a and the mirror .*\/b; evidence in /,
  );
  await checkEvidence(t, evidence);
});

t.test('a mirror that is behind or ahead, or serves another of the logs, is no alarm', async (t) => {
  const { show, audit, url } = await publish(t);
  show(ENTRIES.slice(0, 600));
  for (const size of [1, 256, 599, 600, 601, 700]) {
    show(ENTRIES.slice(0, size), { folder: `mirror-${size}` });
    t.match(await audit('--mirror', `${url}/mirror-${size}`), { code: 0, stderr: '' }, `${size} entries`);
  }
});

t.test('a history rewritten since the last audit is a split view, also where it has grown', async (t) => {
  for (const size of [300, 600]) {
    const { show, audit, evidence } = await publish(t);
    const state = join(t.testdir(), `${size}.json`);
    show(ENTRIES.slice(0, 300));
    t.equal((await audit('--state', state)).code, 0);
    const before = await readFile(state, 'utf8');
    show(FORK.slice(0, size));
    t.equal((await audit('--state', state)).code, 3);
    t.equal(await readFile(state, 'utf8'), before, 'the state is as before');
    await checkEvidence(t, evidence);
  }
});

t.test('two histories signed for one size by log and witness are detected at the witness', async (t) => {
  const cosigned: NoteOptions = { cosigners: [witness] };
  const { show, witnessNote, audit, url, evidence } = await publish(t);
  show(ENTRIES, cosigned);
  witnessNote(noteOver(service, ENTRIES, cosigned));
  const asking = ['--witness', `${url}/witness`];
  t.match(await audit(...asking), { code: 0 });
  witnessNote(noteOver(service, FORK, cosigned));
  const { code, stdout } = await audit(...asking);
  t.equal(code, 3);
  t.match(stdout, /live\.log\.example and w1 have signed two checkpoints of size 700 with different roots/);
  await checkEvidence(t, evidence);
});

t.test('a witness that cosigns a checkpoint the log has not signed is detected', async (t) => {
  const { show, witnessNote, audit, url } = await publish(t);
  show(ENTRIES, { cosigners: [witness] });
  witnessNote(noteOver(service, FORK, { by: stranger, cosigners: [witness] }));
  const { code, stdout } = await audit('--witness', `${url}/witness`);
  t.equal(code, 3);
  t.match(stdout, /w1 has signed two checkpoints of size 700/);
});

t.test('a mirror or witness that cannot be compared ends the audit with exit code 2', async (t) => {
  const table: [name: string, change: (log: PublishedLog) => unknown, message: RegExp][] = [
    ['nothing there', () => {}, /shows no checkpoint of live\.log\.example/],
    [
      'no checkpoint',
      ({ files }) => files.set('mirror/checkpoint', utf8('<html>')),
      /shows no checkpoint of the log/,
    ],
    ['forbidden', ({ status }) => status.set('mirror/checkpoint', 403), /HTTP 403/],
    [
      'signed by nobody',
      ({ showNote }) => showNote(noteOver(service, FORK, { by: stranger }), 'mirror'),
      /a checkpoint is not signed by its log/,
    ],
  ];
  for (const [name, change, message] of table) {
    const log = await publish(t);
    log.show(ENTRIES.slice(0, 300));
    change(log);
    const { code, stdout, stderr } = await log.audit('--mirror', `${log.url}/mirror`);
    t.equal(code, 2, name);
    t.match(stdout, /^ok {6}live\.log\.example: 300 entries/);
    t.match(stdout, message);
    t.match(stderr, message);
  }
});

t.test('a witness ahead of the log raises an alarm if the log lacks the cosigned checkpoint', async (t) => {
  const { show, witnessNote, audit, url } = await publish(t);
  show(ENTRIES.slice(0, 300));
  witnessNote(noteOver(service, ENTRIES));
  const { code, stdout } = await audit('--witness', `${url}/witness`);
  t.equal(code, 1);
  t.match(stdout, /it shows 300 entries now, and has signed that there are 700 \(the witness/);
});
