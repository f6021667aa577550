import { readFileSync } from 'node:fs';
import t from 'tap';
import { PROGRAM } from '../../support/calling/run-cli.js';
import { runProgram } from '../../support/source/loaded-modules.js';

const { engines } = JSON.parse(readFileSync('package.json', 'utf8'));
const [, needed = ''] = /^>=(\d+\.\d+)$/.exec(engines.node) ?? [];

/** What the program prints on standard error in a Node that calls itself that version. */
async function startedBy(version: string): Promise<string> {
  const source = `Object.defineProperty(process.versions, 'node', { value: '${version}' });
Object.defineProperty(process, 'version', { value: 'v${version}' });
process.argv = ['node', 'attest', '--version'];
process.on('exit', (code) => process.stderr.write('exit code ' + code));
await import(${JSON.stringify(PROGRAM.at(-1))});`;
  const { stderr } = await runProgram(source).catch((error: { stderr: string }) => error);
  return stderr;
}

t.test('an older Node gets one line with the version that is needed', async (t) => {
  for (const version of ['14.21.3', '18.20.8', '20.18.3', '20.9.0', '9.0.0']) {
    const line = `error: attest needs Node ${needed} or newer; this is v${version}: ${process.execPath}`;
    t.equal(await startedBy(version), `${line}\nexit code 2`, version);
  }
  for (const version of ['20.19.0', '20.20.0', '22.0.0', '100.1.0'])
    t.equal(await startedBy(version), 'exit code 0', version);
});
