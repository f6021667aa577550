import { existsSync } from 'node:fs';
import type { JsonObject } from '@bufbuild/protobuf';
import { type Command, Option } from 'commander';
import { fromUtf8 } from '../../proof/bytes/encoding.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { parseJsonText } from '../../proof/verify/read/json-text.js';
import type { EnvironmentName } from '../../protocol/environment.js';
import { findInexactIntegers, INEXACT_INTEGER } from '../../protocol/inexact-integers.js';
import { UsageError } from '../cli.js';
import { readInputFile } from '../input/input-file.js';

const MAX_JSON_FLAG_BYTES = 1024 * 1024;

/** Flags of commands that call a service. */
export type ClientFlags = {
  url?: string;
  apiKey?: string;
  profile?: string;
  dataDir?: string;
  environment?: EnvironmentName;
};

/** Help text about them. */
export const CLIENT_HELP = `
Service and key come from --url and --api-key, else --profile, else ATTEST_URL and ATTEST_API_KEY, else a profile of
\`attest login\` (ATTEST_PROFILE, or "default"), else the credentials of \`attest up\` in the data directory, which come before
"default" if --data-dir or DATA_DIR is given. Without a key, a job of GitHub Actions or GitLab CI exchanges its token for
one if a trust rule of the project accepts it (\`attest trust\`): the address is all it needs. Prefer a profile or the variable for the key: other users can see arguments.`;

/** Adds the flags that select the service and the API key. */
export function addClientFlags(
  command: Command,
  environment = 'environment of the key in the data directory (default: live)',
): Command {
  return addAddressFlags(command)
    .option('--api-key <key>', 'API key (ATTEST_API_KEY)')
    .addOption(environmentFlag(environment));
}

/** Adds the flags that select the service, for a command that needs no API key. */
export function addAddressFlags(command: Command): Command {
  return command
    .option('--url <url>', 'base URL of the service (ATTEST_URL)')
    .addOption(
      new Option('--profile <name>', 'profile of `attest login` (ATTEST_PROFILE)').conflicts('dataDir'),
    )
    .option('--data-dir <dir>', 'data directory of `attest up` (DATA_DIR, default: .data)');
}

/** `--environment live|test`. */
export function environmentFlag(description: string): Option {
  return new Option('--environment <environment>', description).choices(['live', 'test']);
}

/**
 * Parses the value of `flag`: a JSON object, or `@` and the path of a file with one. Throws UsageError for other input, a
 * member that occurs twice, and an integer that a double cannot represent exactly.
 */
export async function readJsonFlag(flag: string, text: string): Promise<JsonObject> {
  const json = text.startsWith('@') ? await readInputFile(text.slice(1), flag, MAX_JSON_FLAG_BYTES) : text;
  try {
    const value = parseJsonText(json, MAX_JSON_FLAG_BYTES);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new UsageError(`${flag} is not a JSON object`);
    }
    const [inexact] = findInexactIntegers(typeof json === 'string' ? json : fromUtf8(json));
    if (inexact !== undefined) throw new UsageError(`${flag}: ${inexact} ${INEXACT_INTEGER}`);
    return value as JsonObject;
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    const hint =
      !text.startsWith('@') && existsSync(text) ? `: @${text} is the content of the file ${text}` : '';
    throw new UsageError(`${flag} ${error.message}${hint}`);
  }
}
