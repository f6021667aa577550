import type { Command } from 'commander';
import { printable } from '../../../protocol/printable.js';
import { type Cli, UsageError } from '../../cli.js';
import { addOutputFlags, OUTPUT_HELP, type OutputFlags, printList } from '../../output/format.js';
import { getProfilesPath } from '../../profile/change-profiles.js';
import { chooseProfile, readProfile, shownKey } from '../../profile/find-profile.js';
import { readProfiles } from '../../profile/profile-file.js';

const HELP = `
Keys are shortened. A star marks the profile of commands without --profile.
${OUTPUT_HELP}

Examples:
  $ attest profiles
  $ attest profiles --output json`;

/** A profile as it is listed; `problem` if it cannot be used. */
type Listed = {
  name: string;
  base_url?: string;
  environment?: string;
  key?: string;
  problem?: string;
  is_current: boolean;
};

/** `attest profiles`. */
export function addProfiles(program: Command, cli: Cli): void {
  addOutputFlags(program.command('profiles'))
    .addHelpText('after', HELP)
    .action(async (flags: OutputFlags) => {
      await printList(cli, flags, listProfiles(cli), {
        head: ['', 'NAME', 'ENVIRONMENT', 'KEY', 'SERVICE'],
        cells: ({ name, base_url, environment, key, problem, is_current }) => [
          is_current ? '*' : '',
          printable(name),
          environment ?? '-',
          key ?? '-',
          printable(base_url ?? problem ?? ''),
        ],
        json: (one) => JSON.stringify(one),
      });
    });
}

function listProfiles({ env }: Cli): Listed[] {
  const path = getProfilesPath(env);
  const current = chooseProfile(env, undefined).name;
  return [...readProfiles(path)].map(([name, value]) => {
    const is_current = name === current;
    try {
      const { baseUrl, apiKey } = readProfile(path, name, value);
      const environment = apiKey.startsWith('svc_test_') ? 'test' : 'live';
      return { name, base_url: baseUrl, environment, key: shownKey(apiKey), is_current };
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      return { name, problem: error.message, is_current };
    }
  });
}
