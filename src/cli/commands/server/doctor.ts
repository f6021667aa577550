import { type Command, Option } from 'commander';
import { readConfig } from '../../../config/config.js';
import { ConfigError, type Env } from '../../../config/settings.js';
import { printable } from '../../../protocol/printable.js';
import type { Finding } from '../../../server/process/doctor/finding.js';
import { type Cli, print } from '../../cli.js';
import { readWithFlags } from '../../flags/setting-flags.js';

type Flags = { dataDir?: string; process: 'api' | 'worker'; json?: boolean };

const HELP = `
Checks an installation from where a process of it would run: settings, versions, disks, certificate, Postgres, clock, NATS,
witnesses, keys, checkpoint register, logs, sizes. A line for each: ok, warning or failed, and what to do. Run it with the
settings of the process; where \`attest up\` has run, it needs none. It changes nothing: of witnesses it asks an RFC 3161
authority for a time stamp of random bytes, the others only whether they answer.

Exit codes: 0 nothing failed, 1 a check failed

Examples:
  $ attest doctor
  $ attest doctor --process worker
  $ attest doctor --json | jq 'select(.status != "ok")'`;

/** `attest doctor`. */
export function addDoctor(program: Command, cli: Cli): void {
  program
    .command('doctor')
    .addOption(
      new Option('--process <process>', 'whose settings to check')
        .choices(['api', 'worker'] as const)
        .default('api'),
    )
    .option('--data-dir <dir>', 'data directory of `attest up` (DATA_DIR, default: .data)')
    .option('--json', 'print one JSON object a line')
    .addHelpText('after', HELP)
    .action((flags: Flags) => check(cli, flags));
}

async function check(cli: Cli, { json, process, ...flags }: Flags): Promise<void> {
  const onFinding = (finding: Finding) => {
    if (finding.status === 'failed') cli.exitCode = 1;
    print(cli, json ? JSON.stringify(finding) : formatFinding(finding));
  };
  const found = await readSettings(cli.env, flags, process).catch((error: unknown) => {
    if (!(error instanceof ConfigError)) throw error;
    return error;
  });
  if (found instanceof ConfigError) {
    for (const { name, problem, expected } of found.problems)
      onFinding({ check: `setting ${name}`, status: 'failed', detail: `${problem}, expected ${expected}` });
    return;
  }
  onFinding({ check: 'settings', status: 'ok', detail: `valid for attest ${found.isOfUp ? 'up' : process}` });
  const { runDoctor } = await import('../../../server/process/doctor/doctor.js');
  await runDoctor(found, onFinding);
}

/** Those of `attest up` if it has run over the data directory and no DATABASE_URL is set, else those of the environment. */
async function readSettings(env: Env, flags: { dataDir?: string }, process: Flags['process']) {
  const { findStarted } = await import('../../../server/process/doctor/doctor.js');
  if (!env.DATABASE_URL) {
    const started = await findStarted(
      readWithFlags(env, flags, (settings) => readConfig(settings, { process: 'up' })),
    );
    if (started !== undefined) return { config: started, isOfUp: true };
  }
  return {
    config: readWithFlags(env, flags, (settings) => readConfig(settings, { process })),
    isOfUp: false,
  };
}

function formatFinding({ check, status, detail }: Finding): string {
  return printable(`${status.padEnd(7)}  ${check.padEnd(16)}  ${detail}`);
}
