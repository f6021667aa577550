/** Flags that stand for settings. */
import { ConfigError, type Env } from '../../config/settings.js';

/** The flag that stands for a setting, by the setting, and the name under which commander hands it over. */
const FLAGS = {
  ATTEST_URL: { flag: '--url', member: 'url' },
  ATTEST_API_KEY: { flag: '--api-key', member: 'apiKey' },
  ATTEST_VERIFY_URL: { flag: '--verify-url', member: 'verifyUrl' },
  PORT: { flag: '--port', member: 'port' },
  OPS_PORT: { flag: '--ops-port', member: 'opsPort' },
  DATA_DIR: { flag: '--data-dir', member: 'dataDir' },
} as const;

type Member = (typeof FLAGS)[keyof typeof FLAGS]['member'];

/** The flags of a command that stand for settings, as far as they were given. */
export type SettingFlags = { readonly [M in Member]?: string | undefined };

/**
 * What `read` makes of the environment with the flags in place of their settings. What it finds wrong with one that was
 * given as a flag is said of the flag.
 */
export function readWithFlags<T>(env: Env, flags: SettingFlags, read: (env: Env) => T): T {
  const given = Object.entries(FLAGS).flatMap(([name, { member }]) => {
    const value = flags[member];
    return value === undefined ? [] : [[name, value]];
  });
  try {
    return read({ ...env, ...Object.fromEntries(given) });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(
      error.problems.map((problem) => ({ ...problem, name: flagOrSettingName(problem.name, flags) })),
    );
  }
}

/** What the user knows a setting by: the flag, if it was given as that. */
export function flagOrSettingName(setting: string, flags: SettingFlags): string {
  const known = Object.hasOwn(FLAGS, setting) ? FLAGS[setting as keyof typeof FLAGS] : undefined;
  return known !== undefined && flags[known.member] !== undefined ? known.flag : setting;
}
