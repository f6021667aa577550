/** The completion script in fish. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { runHere } from '../../support/calling/run-cli.js';
import { FISH } from '../../support/foreign/fish.js';
import { PROPOSALS } from './completing.js';

const { stdout: script } = await runHere(['completion', 'fish']);
const dir = t.testdir({ 'attest.fish': script, empty: {} });

/** The proposals for the last of these words, with their descriptions after a tabulator. */
async function propose(...words: string[]): Promise<string[]> {
  const line = `attest ${words.join(' ')}`;
  const lines = `source ${join(dir, 'attest.fish')}; cd ${join(dir, 'empty')}; complete -C '${line}'`;
  const { stdout } = await promisify(execFile)(FISH, ['--no-config', '-c', lines], {
    env: { ...process.env, HOME: dir },
  });
  return stdout.split('\n').filter((proposal) => proposal !== '');
}

t.test('fish proposes commands, flags and choices', async (t) => {
  for (const [words, proposals] of PROPOSALS) {
    const names = (await propose(...words)).map((line) => line.replace(/\t.*/, ''));
    t.same(names.sort(), proposals, words.join(' '));
  }
  t.match(await propose('bundle', '--format=o'), [/^--format=ots\t/]);
});

t.test('with the descriptions of the help', async (t) => {
  t.same(await propose('reda'), ['redact\terase the metadata of a submission; this cannot be undone']);
  t.same(await propose('list', '--data'), [
    '--data-dir\tdata directory of `attest up` (DATA_DIR, default: .data)',
  ]);
});
