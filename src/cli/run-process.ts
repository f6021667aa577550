import { relative } from 'node:path';
import { processEnv } from '../config/process-env.js';
import type { Cli } from './cli.js';
import { runProgram } from './program.js';

/** Exit code when the reader of a pipe closed it: 128 + SIGPIPE, as shells report it. */
const EXIT_BROKEN_PIPE = 141;
/** Exit code when stdout cannot be written; must differ from 1, `verify`'s 'not verified'. */
const EXIT_OUTPUT_ERROR = 2;
const EXIT_CHECK_INTERVAL_MS = 100;

// `attest ... | head` ends quietly, but not with 0: not everything was written.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT_BROKEN_PIPE);
    if (stream === process.stdout)
      process.stderr.write(`error: the output cannot be written: ${error.message}\n`);
    process.exit(EXIT_OUTPUT_ERROR);
  });
}

// Without a listener this signal opens Node's inspector, which runs any code.
process.on('SIGUSR1', () => {});

const script = process.argv[1] ?? '';
const cli: Cli = {
  env: processEnv(),
  // Lazy: reading `process.stdin` opens it, and most commands never read it.
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

// Exits once the command is done and its output is flushed, even if a handle is still open.
setInterval(() => {
  if (process.stdout.writableLength + process.stderr.writableLength === 0) process.exit();
}, EXIT_CHECK_INTERVAL_MS).unref();
