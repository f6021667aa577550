/** What the environment says: read and checked once, at start. The only file that looks at `process.env`. */

import type { Secrets } from '../server/keys/secrets.js';
import { adminToken, secretKey, signingKeyFiles } from './secret-setting-types.js';
import {
  type LogLevel,
  readCheckpointRegister,
  readDataDir,
  readLogLevel,
  readServerSettings,
  type ServerSettings,
} from './server-settings.js';
import { natsUrl, path, postgresUrl } from './setting-types.js';
import { type Env, openSettings, type Settings } from './settings.js';

/** Everything that `attest api` and `attest worker` need to start; `attest up` completes its own to one. */
export type Config = ServerSettings & {
  /** A secret, like every connection string. */
  readonly databaseUrl: string;
  /** Set for `api` and `worker`; `up` runs without where there is no nats-server. */
  readonly natsUrl: string | undefined;
  readonly secrets: Secrets;
};

/** What `attest up` is given; it starts and makes what is undefined. */
export type UpConfig = ServerSettings & {
  readonly databaseUrl: string | undefined;
  readonly natsUrl: string | undefined;
  readonly secrets: Partial<Secrets>;
  /** Where programs are unpacked; a usual place when undefined. */
  readonly cacheDir: string | undefined;
};

/** What `attest migrate` needs. */
export type MigrateConfig = { readonly databaseUrl: string; readonly logLevel: LogLevel };

/** A database to work on: without an address it is the one that `attest up` runs over `dataDir`. */
export type DatabaseConfig = { readonly databaseUrl: string | undefined; readonly dataDir: string };

/** What `attest log` needs. */
export type LogConfig = DatabaseConfig & {
  /** Absolute path of the folder that remembers published checkpoints. */
  readonly checkpointRegister: string;
};

/** The configuration of each command that works on a server's own state. */
export type ConfigByCommand = {
  up: UpConfig;
  api: Config;
  worker: Config;
  migrate: MigrateConfig;
  log: LogConfig;
  'secret-keys': DatabaseConfig;
};

const READERS: { [P in keyof ConfigByCommand]: (settings: Settings) => ConfigByCommand[P] } = {
  up: readUp,
  api: readApi,
  worker: readServer,
  migrate: (settings) => ({
    databaseUrl: settings.require('DATABASE_URL', postgresUrl),
    logLevel: readLogLevel(settings),
  }),
  log: readLog,
  'secret-keys': readDatabase,
};

/** The variables of this process. */
export function processEnv(): Env {
  return process.env;
}

/**
 * Reads the configuration of one command. Files it names are read too, relative to the working directory. Throws
 * ConfigError with everything that is missing or wrong; no secret is ever in it.
 */
export function readConfig<P extends keyof ConfigByCommand>(
  env: Env,
  { process }: { process: P },
): ConfigByCommand[P] {
  const settings = openSettings(env);
  const config = READERS[process](settings);
  settings.assertValid();
  return config;
}

/**
 * The addresses by which the world reaches the service, without a closing slash: as set, or on localhost at the port
 * that the API listens on.
 */
export function publicUrls(
  { baseUrl, verifyUrl, tls }: Pick<ServerSettings, 'baseUrl' | 'verifyUrl' | 'tls'>,
  listeningPort: number,
): { baseUrl: string; verifyUrl: string } {
  const base = baseUrl ?? `${tls ? 'https' : 'http'}://localhost:${listeningPort}`;
  return { baseUrl: base, verifyUrl: verifyUrl ?? `${base}/verify` };
}

function readUp(settings: Settings): UpConfig {
  return {
    ...readServerSettings(settings, { isLocal: true }),
    databaseUrl: settings.find('DATABASE_URL', postgresUrl),
    natsUrl: settings.find('NATS_URL', natsUrl),
    cacheDir: settings.find('CACHE_DIR', path),
    secrets: {
      secretKeys: settings.find('SECRET_KEY', secretKey),
      dsse: settings.find('DSSE_KEY_FILE', signingKeyFiles('dsse')),
      log: settings.find('LOG_KEY_FILE', signingKeyFiles('log')),
      adminToken: settings.find('ADMIN_TOKEN', adminToken),
    },
  };
}

function readServer(settings: Settings): Config {
  return {
    databaseUrl: settings.require('DATABASE_URL', postgresUrl),
    natsUrl: settings.require('NATS_URL', natsUrl),
    secrets: {
      secretKeys: settings.require('SECRET_KEY', secretKey),
      dsse: settings.require('DSSE_KEY_FILE', signingKeyFiles('dsse')),
      log: settings.require('LOG_KEY_FILE', signingKeyFiles('log')),
      adminToken: settings.find('ADMIN_TOKEN', adminToken),
    },
    ...readServerSettings(settings, { isLocal: false }),
  };
}

/** An admin listener that nobody could use is a mistake. */
function readApi(settings: Settings): Config {
  const config = readServer(settings);
  if (config.adminPort !== undefined && config.secrets.adminToken === undefined) {
    settings.report({ name: 'ADMIN_PORT', problem: 'is set', expected: 'a valid ADMIN_TOKEN beside it' });
  }
  return config;
}

function readDatabase(settings: Settings): DatabaseConfig {
  return { databaseUrl: settings.find('DATABASE_URL', postgresUrl), dataDir: readDataDir(settings) };
}

function readLog(settings: Settings): LogConfig {
  const database = readDatabase(settings);
  return { ...database, checkpointRegister: readCheckpointRegister(settings, database.dataDir) };
}
