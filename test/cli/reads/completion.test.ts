/** `attest completion`, and its script in bash. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { runHere } from '../../support/calling/run-cli.js';
import { PROPOSALS } from './completing.js';

const { stdout: script } = await runHere(['completion', 'bash']);
const dir = t.testdir({ 'attest.bash': script });

/** Runs lines in bash after the script. */
async function bash(lines: string): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('bash', [
    '--norc',
    '-c',
    `source ${join(dir, 'attest.bash')}\n${lines}`,
  ]);
  if (stderr !== '') throw new Error(stderr);
  return stdout;
}

/** What bash proposes for the last of these words. */
async function propose(...words: string[]): Promise<string[]> {
  const quoted = words.map((word) => `'${word}'`).join(' ');
  const output = await bash(
    `COMP_WORDS=(attest ${quoted}); COMP_CWORD=${words.length}; _attest attest; printf '%s\\n' "\${COMPREPLY[@]}"`,
  );
  return output
    .split('\n')
    .filter((line) => line !== '')
    .sort();
}

t.test('bash proposes commands, flags and choices', async (t) => {
  for (const [words, proposals] of PROPOSALS) t.same(await propose(...words), proposals, words.join(' '));
  t.same(await propose('bundle', '--format', '=', 'o'), ['ots'], 'the equals sign is a word of its own');
  t.equal((await propose('bundle', '--format', '=')).length, 5);
  t.match(await bash('complete -p attest'), 'complete -o bashdefault -o default -F _attest attest');
});

t.test('the script has every command and flag that the help has', async (t) => {
  const names = async (...path: string[]) => {
    const { stdout } = await runHere([...path, '--help']);
    const start = stdout.indexOf('\nCommands:');
    const commands = start < 0 ? [] : [...stdout.slice(start).matchAll(/^ {2}([a-z][a-z-]*) /gm)];
    return {
      commands: commands.map(([, name = '']) => name).sort(),
      flags: [...stdout.matchAll(/^ {2}(?:-\w, )?(--[a-z][\w-]*)/gm)].map(([, name = '']) => name).sort(),
    };
  };
  const program = await names();
  t.ok(program.commands.length > 30);
  t.same(await propose(''), program.commands);
  for (const command of program.commands.filter((name) => name !== 'help')) {
    const { commands, flags } = await names(command);
    t.same(await propose(command, '--'), flags, command);
    if (commands.length > 0) t.same(await propose(command, ''), commands, command);
  }
});

t.test('a wrong shell is an error that names the shells', async (t) => {
  t.match(await runHere(['completion', 'tcsh']), { code: 2, stderr: /Allowed choices are bash, zsh, fish/ });
  t.match(await runHere(['completion']), { code: 2, stderr: /missing required argument 'shell'/ });
});
