import fc from 'fast-check';
import t from 'tap';
import { compareFiles, type FileFinding, type PresentFile } from '../../../src/proof/set/compare-files.js';
import { readSet } from '../../../src/proof/set/read-set.js';
import { redactSet } from '../../../src/proof/set/set-proof.js';
import { entryOf, pathsArbitrary, piecesOf, sorted, textOf } from './set-sample.js';

async function compare(text: string, files: Iterable<PresentFile>): Promise<FileFinding[]> {
  const set = readSet(piecesOf(text));
  const found: FileFinding[] = [];
  for await (const finding of compareFiles(set.items, files)) found.push(finding);
  await set.finish();
  return found;
}

t.test('each path of set and files is found once, with its state', async (t) => {
  const states = fc.infiniteStream(fc.constantFrom('ok', 'longer', 'other', 'missing', 'extra'));
  await fc.assert(
    fc.asyncProperty(pathsArbitrary(100), states, async (paths, stream) => {
      const all = sorted(paths).map((path) => ({ path, state: stream.next().value as string }));
      const inSet = all.filter(({ state }) => state !== 'extra');
      if (inSet.length === 0) return;
      const files = all
        .filter(({ state }) => state !== 'missing')
        .map(({ path, state }) => {
          const { bytes, sha256 } = entryOf(path);
          return {
            path,
            bytes: bytes + (state === 'longer' ? 1 : 0),
            sha256: state === 'other' ? '' : sha256,
          };
        });
      const text = textOf(inSet.map(({ path }) => path));
      t.strictSame(
        await compare(text, files),
        all.map(({ path, state }) => ({ status: /longer|other/.test(state) ? 'changed' : state, path })),
      );
    }),
    { numRuns: 50 },
  );
});

t.test(
  'a withheld entry is listed by its index, and its file is one that the set does not show',
  async (t) => {
    let text = '';
    for await (const part of redactSet(piecesOf(textOf(['a', 'b', 'c'])), (path) => path !== 'b'))
      text += part;
    t.strictSame(await compare(text, ['a', 'b', 'c'].map(entryOf)), [
      { status: 'ok', path: 'a' },
      { status: 'withheld', index: 1 },
      { status: 'extra', path: 'b' },
      { status: 'ok', path: 'c' },
    ]);
  },
);

t.test('files that are not in order, or come twice, are an error', async (t) => {
  for (const paths of [
    ['b', 'a'],
    ['a', 'a'],
  ]) {
    await t.rejects(compare(textOf(['a']), paths.map(entryOf)), /the files are not in order at a/);
  }
});

t.test('the set whose files are compared is read to its end, or is not a set', async (t) => {
  const text = textOf(['a', 'b']);
  await t.rejects(compare(text.slice(0, -10), ['a', 'b'].map(entryOf)), /line 4 is not JSON, or is cut off/);
  const set = readSet(piecesOf(text));
  for await (const finding of compareFiles(set.items, [])) if (finding.status === 'missing') break;
  await t.rejects(set.finish(), /was not read to its end/);
});
