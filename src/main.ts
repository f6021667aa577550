#!/usr/bin/env node
import { relative } from 'node:path';
import type { Cli } from './cli/cli.js';
import { runProgram } from './cli/program.js';
import { processEnv } from './config/config.js';

/** What a shell reports for a process that wrote to a pipe nobody reads any more: 128 and SIGPIPE. */
const EXIT_BROKEN_PIPE = 141;
/** What was found could not be said. Not 1, with which a verification says that it found something wrong. */
const EXIT_OUTPUT_ERROR = 2;
const EXIT_CHECK_INTERVAL_MS = 1_000;

// The reader has what it wanted (`attest ... | head`): the rest is of no use, but it must not count as done.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT_BROKEN_PIPE);
    if (stream === process.stdout)
      process.stderr.write(`error: the output cannot be written: ${error.message}\n`);
    process.exit(EXIT_OUTPUT_ERROR);
  });
}

const script = process.argv[1] ?? '';
const cli: Cli = {
  env: processEnv(),
  // Opened by whoever reads it: most commands must not.
  get stdin() {
    return process.stdin;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  now: () => new Date(),
  self: script.endsWith('.js') ? `node ${relative(process.cwd(), script)}` : 'attest',
  exitCode: 0,
};
await runProgram(cli, process.argv.slice(2));
process.exitCode = cli.exitCode;

// What still keeps the process alive when the command is done and its output written belongs to nobody.
setInterval(() => {
  if (process.stdout.writableLength + process.stderr.writableLength === 0) process.exit();
}, EXIT_CHECK_INTERVAL_MS).unref();
