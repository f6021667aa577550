/** Archives with lines that somebody made up, signed anew: none is imported, and nothing of one is left. */
import { stat } from 'node:fs/promises';
import t from 'tap';
import { type Copy, changeLines, first, type Json, type Line, openArchive } from './changed-archive.js';

const { copyOf, assertRejected, signAgain } = await openArchive(t);

/** The object of the batch with all kinds of submissions. */
const largest = async ({ objects }: Copy): Promise<string> => {
  const sizes = await Promise.all(objects.map(async (path) => ({ path, size: (await stat(path)).size })));
  return sizes.sort((a, b) => b.size - a.size)[0]?.path ?? '';
};

t.test('lines that contradict the leaf, the batch or the log, with all signatures made anew', async (t) => {
  const row = (change: (row: Line['row']) => void) => (lines: Line[]) => change(first(lines).row);
  const cases: Record<string, [(lines: Line[]) => void, RegExp]> = {
    'an artifact': [
      row((r) => {
        r.artifact_sha256 = 'ab'.repeat(32);
      }),
      /its hash is not that/,
    ],
    'a time': [
      row((r) => {
        r.submitted_at = '2020-01-01T00:00:00.000000Z';
      }),
      /its hash is not that/,
    ],
    'a schema': [
      row((r) => {
        r.schema = 'other';
      }),
      /its hash is not that/,
    ],
    'a signature': [
      row((r) => {
        r.signature = 'ab'.repeat(70);
      }),
      /its hash is not that/,
    ],
    'a leaf hash': [
      row((r) => {
        r.leaf_hash = 'ab'.repeat(32);
      }),
      /its hash is not that/,
    ],
    metadata: [
      row((r) => {
        r.metadata = '{"purl":"pkg:npm/other@1"}';
      }),
      /not what was attested/,
    ],
    'an unknown project': [
      row((r) => {
        r.project = 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0';
      }),
      /project is not in log.json/,
    ],
    'an unknown key': [
      row((r) => {
        r.dsse_key = 'ab';
      }),
      /DSSE key is not in log.json/,
    ],
    'an id of another form': [
      row((r) => {
        r.id = "'; DROP TABLE submission";
      }),
      /no valid id/,
    ],
    'a text with a zero': [
      row((r) => {
        r.build = 'a\0b';
      }),
      /no valid build/,
    ],
    'a statement too many': [
      row((r) => {
        r.statement = {};
      }),
      /statement is missing, or is one too many/,
    ],
    'a changed statement': [
      (lines) => {
        const { statement } = lines.find((line) => line.row.statement?.text !== undefined)?.row ?? {};
        if (statement !== undefined) statement.text = String(statement.text).replace('live', 'test');
      },
      /not the one that was signed/,
    ],
    'no row': [(lines) => void delete (first(lines) as Partial<Line>).row, /not an object/],
    'a line twice': [(lines) => void lines.splice(1, 1, first(lines)), /another one is in its place/],
    'a line too few': [(lines) => void lines.pop(), /lines, not/],
    'a line too many': [(lines) => void lines.push(lines.at(-1) as Line), /more lines than/],
    'lines in another order': [(lines) => void lines.reverse(), /another one is in its place/],
    'no batch': [(lines) => void delete first(lines).batch, /not an object/],
    'another root': [
      (lines) => {
        (first(lines).batch as Json).root_hash = 'ab'.repeat(32);
      },
      /root is not that of its leaves/,
    ],
    'a note of nobody': [
      (lines) => {
        const batch = first(lines).batch as Json;
        batch.note = String(batch.note).replace(/\n— .*\n$/s, '\n— live.log.example.com AAAAAAAA\n');
      },
      /not signed|note|signature/,
    ],
    'evidence of another batch': [
      (lines) => {
        const batch = first(lines).batch as Json & { evidence: Json[] };
        if (batch.evidence[0] !== undefined) batch.evidence[0].tree_size = 10_000;
      },
      /of another batch/,
    ],
    'an oversized line': [
      row((r) => {
        r.build = 'x'.repeat(1024 * 1024);
      }),
      /longer than 1 MiB/,
    ],
  };
  for (const [name, [change, reason]] of Object.entries(cases))
    await t.test(name, async (t) => {
      const copy = await copyOf(t);
      await changeLines(await largest(copy), change);
      await signAgain(copy);
      await assertRejected(t, copy, reason);
    });
});
