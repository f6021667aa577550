/** Archives whose record contradicts the archive or the register: none is imported, and nothing of one is left. */
import { readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { ORIGIN } from '../../../support/archives/archived-log.js';
import { type Json, openArchive } from './changed-archive.js';

const { app, target, copyOf, assertRejected, changeRecord } = await openArchive(t);

t.test('records that contradict the archive or the register, signed anew', async (t) => {
  const predicate = (change: (log: Json) => void) => (statement: Json) => change(statement.predicate as Json);
  const cases: Record<string, [(statement: Json) => void, RegExp]> = {
    'another size': [
      predicate((log) => {
        log.tree_size = 5;
      }),
      /leaves, and the log had 5/,
    ],
    'another origin': [
      predicate((log) => {
        log.origin = 'live.example.org';
      }),
      /is of another log/,
    ],
    'another key': [
      predicate((log) => {
        log.public_key = 'ab'.repeat(32);
      }),
      /has another key/,
    ],
    'another lane': [
      predicate((log) => {
        log.lane = 2;
      }),
      /no later epoch/,
    ],
    'a path outside': [
      (statement) => {
        (statement.subject as Json[])[0]!.name = '../../secrets/manifest.json';
      },
      /no valid name/,
    ],
    'no days': [
      (statement) => {
        statement.subject = [];
      },
      /has 0 leaves/,
    ],
    'a day twice': [
      (statement) => {
        const subject = statement.subject as Json[];
        statement.subject = [...subject, ...subject];
      },
      /not in order/,
    ],
    'another statement': [
      (statement) => {
        statement.predicateType = 'urn:x';
      },
      /not the record of an archived log/,
    ],
  };
  for (const [name, [change, reason]] of Object.entries(cases))
    await t.test(name, async (t) => {
      const copy = await copyOf(t);
      await changeRecord(copy, change);
      await assertRejected(t, copy, reason);
    });
});

t.test('an epoch that the register contradicts is a fork', async (t) => {
  const copy = await copyOf(t);
  const folder = join(app.register, `${ORIGIN}.checkpoint`);
  const [entry = ''] = await readdir(folder);
  const forked = entry.replace(/-[0-9a-f]{64}-/, `-${'07'.repeat(32)}-`);
  await rename(join(folder, entry), join(folder, forked));
  await assertRejected(t, copy, /contradicts the checkpoint register: .*another root/);
  await rename(join(folder, forked), join(folder, entry.replace(/^\d+/, '100')));
  await assertRejected(t, copy, /contradicts the checkpoint register: .*100/);
  await rename(join(folder, entry.replace(/^\d+/, '100')), join(folder, entry));
  t.match(await target.run('log', 'import', ORIGIN, '--from', copy.folder), { code: 0 });
});
