/** The completion script in zsh; the functions of zsh's completion system print what they are called with. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { runHere } from '../../support/calling/run-cli.js';
import { ZSH } from '../../support/foreign/zsh.js';
import { PROPOSALS } from './completing.js';

const { stdout: script } = await runHere(['completion', 'zsh']);
const dir = t.testdir({ _attest: script });

const STUBS = `
compdef() { }
compset() { }
_files() { }
compadd() { shift; print -rl -- "$@" }
_describe() { print -rl -- "\${(@P)argv[-1]}" }
`;

/** The proposals for the last of these words, with their descriptions after a colon. */
async function propose(...given: string[]): Promise<string[]> {
  const quoted = given.map((word) => `'${word}'`).join(' ');
  const state = `words=(attest ${quoted}); CURRENT=${given.length + 1}; PREFIX='${given.at(-1)}'`;
  const lines = `${STUBS}\nsource ${join(dir, '_attest')} 2>/dev/null\n${state}\n_attest`;
  const { stdout, stderr } = await promisify(execFile)(ZSH, ['-f', '-c', lines]);
  if (stderr !== '') throw new Error(stderr);
  return stdout.split('\n').filter((line) => line !== '');
}

t.test('zsh proposes commands, flags and choices', async (t) => {
  for (const [words, proposals] of PROPOSALS) {
    const all = (await propose(...words)).map((line) => line.replace(/:.*/, ''));
    t.same(all.filter((name) => name.startsWith(words.at(-1) ?? '')).sort(), proposals, words.join(' '));
  }
  t.same((await propose('bundle', '--format=o')).sort(), (await propose('bundle', '--format', '')).sort());
});

t.test('with the descriptions of the help', async (t) => {
  t.ok((await propose('')).includes('redact:erase the metadata of a submission; this cannot be undone'));
  const flag = '--data-dir:data directory of `attest up` (DATA_DIR, default: .data)';
  t.ok((await propose('list', '--')).includes(flag));
});
