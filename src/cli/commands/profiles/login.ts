import type { Command } from 'commander';
import { type Me, MeSchema } from '../../../../gen/attestation/v1/service_pb.js';
import { createClient } from '../../../client/client.js';
import { publicUrl } from '../../../config/setting-types.js';
import { openSettings } from '../../../config/settings.js';
import { compileWriter } from '../../../server/json/codec.js';
import { type Cli, print, printError, UsageError } from '../../cli.js';
import { reportRetry } from '../../flags/open-client.js';
import { readWithFlags } from '../../flags/setting-flags.js';
import { openFetch } from '../../input/network.js';
import { principalRows } from '../../output/me-text.js';
import { formatTable } from '../../output/table.js';
import { askKey } from '../../profile/ask-key.js';
import { changeProfile, getProfilesPath } from '../../profile/change-profiles.js';
import { chooseProfile, readProfile, shownKey } from '../../profile/find-profile.js';
import { readProfiles } from '../../profile/profile-file.js';

type Flags = { url?: string; profile?: string; apiKeyStdin?: boolean; json?: boolean };

const HELP = `
Asks for an API key, without echo, and calls the service with it. Then keeps both as a profile, for all commands without
--url, --api-key and their variables, in attest/profiles.json of $XDG_CONFIG_HOME, else of ~/.config, which only its owner
may read. A kept key is sent to the address it was kept with, and to no other.

Examples:
  $ attest login --url https://attest.example.com
  $ attest login --url https://attest.example.com --profile ci --api-key-stdin < key.txt
  $ attest submit model.bin --profile ci`;

/** `attest login`. */
export function addLogin(program: Command, cli: Cli): void {
  program
    .command('login')
    .option('--url <url>', 'base URL of the service (ATTEST_URL, else that of the profile)')
    .option('--profile <name>', 'name to keep it under (ATTEST_PROFILE, else "default")')
    .option('--api-key-stdin', 'read the key from standard input')
    .option('--json', 'print the profile and its principal as JSON')
    .addHelpText('after', HELP)
    .action((flags: Flags) => logIn(cli, flags));
}

async function logIn(cli: Cli, flags: Flags): Promise<void> {
  const { name } = chooseProfile(cli.env, flags.profile);
  const path = getProfilesPath(cli.env);
  // Before the question: a file that cannot be used is reported while no key has been typed.
  const baseUrl = findUrl(cli, flags, path, name);
  const apiKey = await askKey(cli, baseUrl, { isPiped: flags.apiKeyStdin === true });
  const me = await findPrincipal(cli, { baseUrl, apiKey });
  const isReplaced = await changeProfile(path, name, { baseUrl, apiKey });
  if (flags.json) {
    const head = JSON.stringify({ profile: name, file: path, base_url: baseUrl });
    print(cli, `${head.slice(0, -1)},"me":${compileWriter(MeSchema)(me)}}`);
  } else {
    const place = `${name} in ${path}${isReplaced ? ' (replaced)' : ''}`;
    print(cli, formatTable([['service', baseUrl], ...principalRows(me), ['profile', place]]));
  }
  const before = ['ATTEST_URL', 'ATTEST_API_KEY', 'ATTEST_API_KEY_FILE'].filter(
    (setting) => cli.env[setting],
  );
  if (before.length > 0)
    printError(
      cli,
      `note: ${before.join(' and ')} of the environment come before this profile, unless --profile names it`,
    );
}

/** The address by --url, ATTEST_URL, or the profile to be replaced. Throws UsageError if there is none. */
function findUrl(cli: Cli, flags: Flags, path: string, name: string): string {
  const profiles = readProfiles(path);
  const given = readWithFlags(cli.env, { url: flags.url }, (env) => {
    const settings = openSettings(env);
    const url = settings.find('ATTEST_URL', publicUrl);
    settings.assertValid();
    return url;
  });
  if (given !== undefined) return given;
  if (profiles.has(name)) return readProfile(path, name, profiles.get(name)).baseUrl;
  throw new UsageError('no service is named: attest login --url https://attest.example.com');
}

async function findPrincipal(cli: Cli, profile: { baseUrl: string; apiKey: string }): Promise<Me> {
  cli.service = { url: profile.baseUrl, urlFrom: 'login', key: shownKey(profile.apiKey), keyFrom: 'login' };
  return createClient({
    ...profile,
    fetch: openFetch(cli.env),
    onRetry: (error, delayMs) => reportRetry(cli, error, delayMs),
  }).service.getMe();
}
