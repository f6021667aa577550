import t from 'tap';
import { runHere } from '../../support/calling/run-cli.js';
import { resolvedBy } from '../../support/source/loaded-modules.js';

const PROGRAM = new URL('../../../src/cli/program.js', import.meta.url).href;

/** The modules of commands that the program loads for these arguments. */
async function commandsLoadedBy(args: readonly string[]): Promise<string[]> {
  const loaded = await resolvedBy(`import { Writable } from 'node:stream';
import { runProgram } from ${JSON.stringify(PROGRAM)};
const stdout = new Writable({ write: (_piece, _encoding, done) => done() });
await runProgram({ env: {}, stdout, stderr: stdout, exitCode: 0 }, ${JSON.stringify(args)});`);
  return [...loaded.matchAll(/\/cli\/commands\/(.+)\.[jt]s$/gm)].map(([, name = '']) => name).sort();
}

t.test('the help of the program loads no command, that of a command only its own', async (t) => {
  for (const args of [['--help'], ['-h'], ['help'], ['--version'], ['nonsense'], []]) {
    t.same(await commandsLoadedBy(args), [], args.join(' '));
  }
  for (const args of [
    ['migrate', '--help'],
    ['help', 'migrate'],
    ['migrate', '--nonsense'],
  ]) {
    t.same(await commandsLoadedBy(args), ['server/migrate'], args.join(' '));
  }
});

t.test('a command has the same summary in the help of the program and in its own', async (t) => {
  const { stdout } = await runHere(['--help']);
  const listed = [...stdout.matchAll(/^ {2}([a-z][a-z-]*) {2,}(.+)$/gm)].filter(
    ([, name]) => name !== 'help',
  );
  t.ok(listed.length > 20);
  t.notMatch(stdout, /in the package/i, 'this program has all commands');
  for (const [, name = '', summary = ''] of listed) {
    const help = await runHere([name, '--help']);
    t.ok(help.stdout.includes(`\n\n${summary}\n\n`), name);
    t.match(help.stdout, /Examples?:/, name);
  }
});

t.test('the nearest name is suggested for a mistyped command', async (t) => {
  for (const [typed, meant] of [
    ['sumbit', 'submit'],
    ['webhoks', 'webhooks'],
    ['verify-pge', 'verify-page'],
  ] as const) {
    const { code, stderr } = await runHere([typed]);
    t.equal(code, 2);
    t.match(stderr, `(Did you mean ${meant}?)`);
  }
});
