// Runs a campaign of faults against the service and judges it. `--help` says what can be chosen.
import { chmodSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createShutdownHooks, type ShutdownHooks } from '../../src/server/core/shutdown.js';
import { type Reporter, runCampaign } from './campaign.js';
import { chooseKinds, FAULT_KINDS } from './faults/faults.js';
import { proveChecker, provenLines } from './judge/prove.js';
import { HELP, type Options, readOptions, UsageError } from './options.js';
import { reportLines, summarize } from './report.js';

const hooks = createShutdownHooks();
let interrupted: NodeJS.Signals | undefined;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (interrupted !== undefined) return;
    interrupted = signal;
    console.error('\nstopping everything');
    void hooks.run().finally(() => process.exit(128 + constants.signals[signal]));
  });
}

/** What is under way when a signal stops everything fails; nothing of that is to be told. */
process.on('unhandledRejection', (error) => {
  if (interrupted !== undefined) return;
  console.error(error);
  void hooks.run().finally(() => process.exit(2));
});

try {
  const options = readOptions(process.argv.slice(2));
  if (options === 'help') console.log(HELP);
  else if (options === 'list') for (const { name } of FAULT_KINDS) console.log(name);
  else process.exitCode = await run(options, hooks);
} catch (error) {
  if (interrupted === undefined) {
    console.error(error instanceof UsageError ? `${error.message}\n\n${HELP}` : error);
    process.exitCode = 2;
  }
} finally {
  if (interrupted === undefined) {
    await hooks.run();
    // Without it Node 20 has waited for ever for a handle of a killed peer to close, with nothing left to do.
    process.exit();
  }
}

async function run(options: Options, hooks: ShutdownHooks): Promise<number> {
  const kinds = chooseKinds(options.only, options.scene);
  const dir = mkdtempSync(join(tmpdir(), 'attest-chaos-'));
  // Postgres runs as another user where this one is root.
  chmodSync(dir, 0o711);
  let held = false;
  hooks.add(async () => {
    if (options.keep || (!held && interrupted === undefined)) console.error(`kept: ${dir}`);
    else await rm(dir, { recursive: true, force: true });
  });
  const reporter = createReporter();
  reporter.say(`seed ${options.seed}`);
  const result = await runCampaign({ ...options, kinds, dir }, reporter, hooks);
  if (!options.json) console.log(reportLines(result));
  const proven = options.proveChecker ? await proveChecker(result) : [];
  if (options.json) console.log(JSON.stringify({ ...summarize(result), proven }, null, 2));
  else if (proven.length > 0) console.log(provenLines(proven));
  held = result.problems.length === 0 && proven.every(({ found }) => found.length > 0);
  return held ? 0 : 1;
}

/** On a terminal, progress is a line that is written over; in a file only what stays is written. */
function createReporter(): Reporter {
  const { isTTY } = process.stderr;
  const clear = isTTY ? '\r\u001b[K' : '';
  return {
    say: (line) => process.stderr.write(`${clear}${line}\n`),
    progress: (line) => {
      if (isTTY) process.stderr.write(`${clear}${line}`);
    },
  };
}
