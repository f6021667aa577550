/** Flags that override settings. */
import { ConfigError, type Env } from '../../config/settings.js';

/** Each setting's flag, and the flag's property name in commander. */
const FLAGS = {
  ATTEST_URL: { flag: '--url', member: 'url' },
  ATTEST_API_KEY: { flag: '--api-key', member: 'apiKey' },
  ATTEST_VERIFY_URL: { flag: '--verify-url', member: 'verifyUrl' },
  PORT: { flag: '--port', member: 'port' },
  OPS_PORT: { flag: '--ops-port', member: 'opsPort' },
  API_PROCESSES: { flag: '--processes', member: 'processes' },
  DATA_DIR: { flag: '--data-dir', member: 'dataDir' },
  SIGNER_CONFIG: { flag: '--config', member: 'config' },
  SIGNER_SOCKET: { flag: '--socket', member: 'socket' },
  SIGNER_SOCKET_MODE: { flag: '--socket-mode', member: 'socketMode' },
} as const;

type Member = (typeof FLAGS)[keyof typeof FLAGS]['member'];

/** Values of the flags that override settings. */
export type SettingFlags = { readonly [M in Member]?: string | undefined };

/**
 * Calls `read` with the environment after flags override their settings. Rethrows its ConfigError with problems named
 * by flag where the value came from a flag.
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

/** The flag if the value came from one, else the setting. */
export function flagOrSettingName(setting: string, flags: SettingFlags): string {
  const known = Object.hasOwn(FLAGS, setting) ? FLAGS[setting as keyof typeof FLAGS] : undefined;
  return known !== undefined && flags[known.member] !== undefined ? known.flag : setting;
}
