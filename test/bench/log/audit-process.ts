// Audits a log in a process of its own and prints what it cost, as JSON: <URL of the trust roots> <leaves>.
import { Writable } from 'node:stream';
import type { Cli } from '../../../src/cli/cli.js';
import { runProgram } from '../../../src/cli/program.js';
import { peakMib } from '../process.js';

/** What an audit of all leaves took. */
export type AuditResult = {
  leaves: number;
  seconds: number;
  cpuSeconds: number;
  peakMib: number | undefined;
};

const [url = '', leaves = ''] = process.argv.slice(2);
const lines: string[] = [];
const stdout = new Writable({
  write: (line: Buffer, _, done) => {
    lines.push(String(line));
    done();
  },
});
const cli: Cli = {
  env: {},
  stdin: process.stdin,
  stdout,
  stderr: process.stderr,
  now: () => new Date(),
  self: 'attest',
  exitCode: 0,
};
const startedAt = performance.now();
const before = process.cpuUsage();
await runProgram(cli, ['audit', url, '--environment', 'live', '--json']);
const { user, system } = process.cpuUsage(before);
const report = JSON.parse(lines.at(-1) ?? '{}');
const read = report.logs?.[0]?.entries_read;
if (cli.exitCode !== 0 || read !== Number(leaves)) throw new Error(`the audit failed: ${lines.join('')}`);
const result: AuditResult = {
  leaves: read,
  seconds: (performance.now() - startedAt) / 1000,
  cpuSeconds: (user + system) / 1e6,
  peakMib: peakMib(process.pid),
};
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit();
