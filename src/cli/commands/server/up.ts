import { join } from 'node:path';
import type { Command } from 'commander';
import { readConfig } from '../../../config/config.js';
import type { Ready } from '../../../server/process/addresses.js';
import { type Cli, print } from '../../cli.js';
import { readWithFlags } from '../../flags/setting-flags.js';
import { shellWord } from '../../output/shell-word.js';
import { openSteps, type Steps } from '../../output/steps.js';
import { hasProfiles } from '../../profile/profile-file.js';
import { addApiFlags, addProcessesFlag, readyJson, runServer, type ServerFlags } from '../../run-server.js';

const HELP = `
Starts an embedded Postgres and nats-server (unless DATABASE_URL and NATS_URL are set), the API and the worker. Keys,
secrets and data persist in the data directory. Shows each step of the start on standard error, and prints
"ready" and the addresses once the service accepts requests.

Examples:
  $ attest up
  $ attest up --port 0 --ops-port 0 --data-dir /tmp/attest`;

/** `attest up`. */
export function addUp(program: Command, cli: Cli): void {
  addProcessesFlag(addApiFlags(program.command('up')), 'one per two cores, at most 8')
    .addHelpText('after', HELP)
    .action(async (flags: ServerFlags) => {
      const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'up' }));
      const steps = startSteps(cli, flags);
      const { runUp } = await import('../../../server/process/run.js');
      await runServer(
        cli,
        (options) => runUp(config, { ...options, onStep: steps.begin }).finally(steps.end),
        (ready) => {
          steps.end();
          const credentials = join(config.dataDir, 'credentials.json');
          const made: Record<string, string> =
            ready.newLogDomain === undefined ? {} : { log_domain: ready.newLogDomain };
          const json = () => readyJson(ready, { credentials, ...made });
          print(cli, flags.json ? json() : readyText(cli, ready, flags.dataDir));
        },
      );
    });
}

/** Shows the steps of the start, except to programs. */
function startSteps({ stderr, now }: Cli, { json }: ServerFlags): Steps {
  if (json) return { begin: () => {}, end: () => {} };
  const every = (ms: number, run: () => void) => {
    const timer = setInterval(run, ms).unref();
    return () => clearInterval(timer);
  };
  return openSteps({ output: stderr, now: () => now().getTime(), every });
}

function readyText(
  { self, env }: Cli,
  { baseUrl, verifyUrl, opsUrl, adminUrl, dashboardUrl, projectId, newLogDomain }: Ready,
  dataDir = env.DATA_DIR || (hasProfiles(env) ? '.data' : undefined),
): string {
  const credentials = join(dataDir ?? '.data', 'credentials.json');
  const flag = dataDir === undefined ? '' : ` --data-dir ${shellWord(dataDir)}`;
  const project = projectId === undefined ? '' : ` --project ${projectId}`;
  return [
    `ready ${baseUrl}`,
    `  API reference        ${baseUrl}/docs`,
    `  verify page          ${verifyUrl}/`,
    ...(dashboardUrl === undefined
      ? []
      : [`  dashboard            ${dashboardUrl} (sign in with the admin_token below)`]),
    `  trust roots and log  ${verifyUrl}/trust_roots.json`,
    `  health and metrics   ${opsUrl}`,
    ...(adminUrl === undefined ? [] : [`  admin API            ${adminUrl}`]),
    `  keys, admin_token    ${credentials}`,
    ...(newLogDomain === undefined
      ? []
      : [
          `  logs                 live.${newLogDomain}, test.${newLogDomain} (new names, kept in this data directory)`,
        ]),
    'Submit a file, wait for its witnesses, verify:',
    `  id=$(${self} submit package.json --quiet${flag})`,
    `  ${self} bundle "$id" --wait -o package.json.bundle${flag}`,
    `  ${self} verify package.json --bundle package.json.bundle${project}${flag}`,
    'List what was submitted, with curl:',
    `  ${curlLine(credentials, `${baseUrl}/v1/attestations`)}`,
  ].join('\n');
}

/** A call with the live key of the data directory. The key reaches curl by a pipe: other users see arguments. */
function curlLine(credentials: string, url: string): string {
  const header = `sed -n 's/.*"live_key": "\\(.*\\)".*/Authorization: Bearer \\1/p' ${shellWord(credentials)}`;
  return `${header} | curl -sS -H @- ${shellWord(url)}`;
}
