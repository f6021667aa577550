/** Configuration, read from the environment and validated once at startup. */

import type { Secrets } from '../server/keys/secrets.js';
import { type RegisterConfig, readRegisterConfig } from './checkpoint-register.js';
import { type CosignerConfig, readCosignerConfig } from './cosigner-settings.js';
import { type Storage, storage } from './object-storage.js';
import { dsseKeyFiles, logKeyFiles, mlDsaKeyFiles, secretKey, tufKeyFiles } from './secret-setting-types.js';
import {
  type LogLevel,
  readDataDir,
  readLogLevel,
  readServerSettings,
  type ServerSettings,
} from './server-settings.js';
import { natsUrl, postgresUrl } from './server-urls.js';
import { adminToken, path } from './setting-types.js';
import { type Env, openSettings, type Settings } from './settings.js';
import { readSignerConfig, type SignerConfig } from './signer/signer-settings.js';

/** Configuration of `attest api` and `attest worker`; `attest up` derives one from its own. */
export type Config = ServerSettings & {
  /** Contains a secret, like every connection string. */
  readonly databaseUrl: string;
  /** Always set for `api` and `worker`; `up` runs without NATS where no nats-server is installed. */
  readonly natsUrl: string | undefined;
  readonly secrets: Secrets;
};

/** Configuration of `attest up`, which starts the servers and creates the secrets that are undefined. */
export type UpConfig = ServerSettings & {
  readonly databaseUrl: string | undefined;
  readonly natsUrl: string | undefined;
  readonly secrets: Partial<Secrets>;
  /** Where embedded programs are unpacked; undefined for the default. */
  readonly cacheDir: string | undefined;
};

/** Configuration of `attest migrate`. */
export type MigrateConfig = { readonly databaseUrl: string; readonly logLevel: LogLevel };

/** The database to connect to; if `databaseUrl` is undefined, the one of `attest up` in `dataDir`. */
export type DatabaseConfig = { readonly databaseUrl: string | undefined; readonly dataDir: string };

/** Configuration of `attest log`. */
export type LogConfig = DatabaseConfig & {
  readonly checkpointRegister: RegisterConfig;
};

/** Configuration of the archives of logs: `dsse` signs them; undefined for the keys of `attest up` in `dataDir`. */
export type ArchiveConfig = LogConfig &
  Pick<Partial<Secrets>, 'dsse'> & { readonly logStorage: Storage | undefined };

/** Configuration types of the commands that start a server or open its database. */
export type ConfigByCommand = {
  up: UpConfig;
  api: Config;
  worker: Config;
  migrate: MigrateConfig;
  log: LogConfig;
  archive: ArchiveConfig;
  witness: CosignerConfig;
  backup: DatabaseConfig;
  signer: SignerConfig;
  'dsse-keys': DatabaseConfig;
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
  archive: (settings) => ({
    ...readLog(settings),
    dsse: settings.find('DSSE_KEY_FILE', dsseKeyFiles),
    logStorage: settings.find('LOG_STORAGE', storage),
  }),
  witness: readCosignerConfig,
  backup: readDatabase,
  signer: readSignerConfig,
  'dsse-keys': readDatabase,
  'secret-keys': readDatabase,
};

/**
 * Reads the configuration of one command, and the files it names, relative to the working directory. Throws ConfigError
 * with all missing or invalid settings; it never contains a secret.
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
 * The public base URLs of the service without a trailing slash: as configured, else localhost and the port that the API
 * listens on.
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
      dsse: settings.find('DSSE_KEY_FILE', dsseKeyFiles),
      log: settings.find('LOG_KEY_FILE', logKeyFiles),
      logMlDsa: settings.find('LOG_ML_DSA_KEY_FILE', mlDsaKeyFiles),
      tuf: settings.find('TUF_KEY_FILE', tufKeyFiles),
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
      dsse: settings.require('DSSE_KEY_FILE', dsseKeyFiles),
      log: settings.require('LOG_KEY_FILE', logKeyFiles),
      logMlDsa: settings.find('LOG_ML_DSA_KEY_FILE', mlDsaKeyFiles),
      tuf: settings.find('TUF_KEY_FILE', tufKeyFiles) ?? [],
      adminToken: settings.find('ADMIN_TOKEN', adminToken),
    },
    ...readServerSettings(settings, { isLocal: false }),
  };
}

/** Rejects ADMIN_PORT without ADMIN_TOKEN and OIDC_ISSUER: no request would be authorised. */
function readApi(settings: Settings): Config {
  const config = readServer(settings);
  const { adminPort, oidc, secrets } = config;
  if (adminPort !== undefined && secrets.adminToken === undefined && oidc === undefined) {
    const expected = 'a valid ADMIN_TOKEN or OIDC_ISSUER beside it';
    settings.report({ name: 'ADMIN_PORT', problem: 'is set', expected });
  }
  return config;
}

function readDatabase(settings: Settings): DatabaseConfig {
  return { databaseUrl: settings.find('DATABASE_URL', postgresUrl), dataDir: readDataDir(settings) };
}

function readLog(settings: Settings): LogConfig {
  const database = readDatabase(settings);
  return { ...database, checkpointRegister: readRegisterConfig(settings, database.dataDir) };
}
