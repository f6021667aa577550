import type { Command } from 'commander';
import { type Cli, print, UsageError } from '../../cli.js';
import { changeProfile, getProfilesPath } from '../../profile/change-profiles.js';
import { chooseProfile } from '../../profile/find-profile.js';
import { hasProfiles } from '../../profile/profile-file.js';

type Flags = { profile?: string; json?: boolean };

const HELP = `
Deletes the profile with its key from this machine. The key continues to work elsewhere: \`attest keys revoke\` ends it.

Examples:
  $ attest logout
  $ attest logout --profile ci`;

/** `attest logout`. */
export function addLogout(program: Command, cli: Cli): void {
  program
    .command('logout')
    .option('--profile <name>', 'the profile (ATTEST_PROFILE, else "default")')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action((flags: Flags) => logOut(cli, flags));
}

async function logOut(cli: Cli, flags: Flags): Promise<void> {
  const { name } = chooseProfile(cli.env, flags.profile);
  const path = getProfilesPath(cli.env);
  const isGone = hasProfiles(cli.env) && (await changeProfile(path, name, undefined));
  if (!isGone) throw new UsageError(`there is no profile ${name} in ${path}: \`attest profiles\` lists them`);
  print(
    cli,
    flags.json ? JSON.stringify({ profile: name, file: path }) : `forgot profile ${name} of ${path}`,
  );
}
