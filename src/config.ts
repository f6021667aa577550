/** What the environment says: read and checked once, at start. The only file that looks at `process.env`. */
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { directory } from './config/files.js';
import {
  bindAddress,
  duration,
  flag,
  hostName,
  natsUrl,
  oneOf,
  origins,
  path,
  port,
  postgresUrl,
  publicUrl,
  wholeNumber,
} from './config/kinds.js';
import { adminToken, secretKey, signingKeyFiles } from './config/secret-kinds.js';
import { type Env, openSettings, type Settings } from './config/settings.js';
import { readTlsFiles, type TlsFiles } from './config/tls-files.js';
import { readWitnesses, type WitnessConfig } from './config/witnesses.js';
import type { Secrets } from './secrets.js';

/** The settings that every server process has. */
type ServerSettings = {
  /** Where the API listens; a port of 0 is any free one. */
  readonly host: string;
  readonly port: number;
  /** Where `/livez`, `/readyz` and `/metrics` listen. */
  readonly opsHost: string;
  readonly opsPort: number;
  /** Absolute. */
  readonly dataDir: string;
  /** As set; `publicUrls` knows what they are when not. */
  readonly baseUrl: string | undefined;
  readonly verifyUrl: string | undefined;
  /** The host name that the logs' origins end in. */
  readonly logDomain: string;
  /** Absolute path of the folder that remembers published checkpoints. */
  readonly checkpointRegister: string;
  /** Besides the log itself and what `attest up` embeds. */
  readonly witnesses: readonly WitnessConfig[];
  readonly witnessDeadlineMs: number;
  readonly batchIntervalMs: number;
  readonly batchMaxLeaves: number;
  /** A directory with metadata schemas beyond the built-in ones. */
  readonly schemaDir: string | undefined;
  readonly idempotencyRetentionMs: number;
  /** How long deliveries of webhooks and their attempts are kept. */
  readonly webhookHistoryMs: number;
  /** Whether webhooks may go to http and to addresses that are not public. */
  readonly allowInsecureDestinations: boolean;
  readonly tls: TlsFiles | undefined;
  /** Web origins that may call the API from a page; `['*']` for all. */
  readonly corsOrigins: readonly string[];
  readonly logLevel: LogLevel;
  /** Connections to Postgres that one process holds at most. */
  readonly poolSize: number;
};

/** Everything that `attest api` and `attest worker` need to start; `attest up` completes its own to one. */
export type Config = ServerSettings & {
  /** A secret, like every connection string. */
  readonly databaseUrl: string;
  readonly natsUrl: string;
  readonly secrets: Secrets;
};

/** What `attest up` is given; it starts and makes what is undefined. */
export type UpConfig = ServerSettings & {
  readonly databaseUrl: string | undefined;
  readonly natsUrl: string | undefined;
  readonly secrets: Partial<Secrets>;
};

/** What `attest migrate` needs. */
export type MigrateConfig = { readonly databaseUrl: string; readonly logLevel: LogLevel };

/** What `attest log` needs: without a database it is the one `attest up` runs over `dataDir`. */
export type LogConfig = {
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
  /** Absolute path of the folder that remembers published checkpoints. */
  readonly checkpointRegister: string;
};

/** The configuration of each command that works on a server's own state. */
export type ConfigOf = {
  up: UpConfig;
  api: Config;
  worker: Config;
  migrate: MigrateConfig;
  log: LogConfig;
};

export type LogLevel = (typeof LOG_LEVELS)[number];

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const READERS: { [P in keyof ConfigOf]: (settings: Settings) => ConfigOf[P] } = {
  up: readUp,
  api: readServer,
  worker: readServer,
  migrate: (settings) => ({
    databaseUrl: settings.need('DATABASE_URL', postgresUrl),
    logLevel: readLogLevel(settings),
  }),
  log: readLog,
};

/** The variables of this process. */
export function processEnv(): Env {
  return process.env;
}

/**
 * Reads the configuration of one command. Files it names are read too, relative to the working directory. Throws
 * ConfigError with everything that is missing or wrong; no secret is ever in it.
 */
export function readConfig<P extends keyof ConfigOf>(env: Env, { process }: { process: P }): ConfigOf[P] {
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
    databaseUrl: settings.need('DATABASE_URL', postgresUrl),
    natsUrl: settings.need('NATS_URL', natsUrl),
    secrets: {
      secretKeys: settings.need('SECRET_KEY', secretKey),
      dsse: settings.need('DSSE_KEY_FILE', signingKeyFiles('dsse')),
      log: settings.need('LOG_KEY_FILE', signingKeyFiles('log')),
      adminToken: settings.find('ADMIN_TOKEN', adminToken),
    },
    ...readServerSettings(settings, { isLocal: false }),
  };
}

function readServerSettings(settings: Settings, { isLocal }: { isLocal: boolean }): ServerSettings {
  const host = settings.get('HOST', bindAddress, isLocal ? '127.0.0.1' : '0.0.0.0');
  const dataDir = readDataDir(settings);
  const baseUrl = settings.find('BASE_URL', publicUrl);
  return {
    host,
    port: settings.get('PORT', port, 8080),
    opsHost: settings.get('OPS_HOST', bindAddress, host),
    opsPort: settings.get('OPS_PORT', port, 9090),
    dataDir,
    baseUrl,
    verifyUrl: settings.find('VERIFY_URL', publicUrl),
    logDomain: settings.get('LOG_DOMAIN', hostName, defaultLogDomain(baseUrl)),
    checkpointRegister: readRegister(settings, dataDir),
    witnesses: readWitnesses(settings),
    witnessDeadlineMs: settings.get('WITNESS_DEADLINE', duration('1s', '30d'), 3_600_000),
    batchIntervalMs: settings.get('BATCH_INTERVAL', duration('10ms', '1h'), 1_000),
    batchMaxLeaves: settings.get('BATCH_MAX_LEAVES', wholeNumber(1, 1_048_576), 65_536),
    schemaDir: settings.find('SCHEMA_DIR', directory),
    idempotencyRetentionMs: settings.get('IDEMPOTENCY_RETENTION', duration('1m', '30d'), 86_400_000),
    webhookHistoryMs: settings.get('WEBHOOK_HISTORY', duration('1d', '365d'), 30 * 86_400_000),
    allowInsecureDestinations: settings.get('ALLOW_INSECURE_DESTINATIONS', flag, isLocal),
    tls: readTlsFiles(settings, path),
    corsOrigins: settings.get('CORS_ORIGINS', origins, []),
    logLevel: readLogLevel(settings),
    poolSize: settings.get('PG_POOL', wholeNumber(2, 500), 10),
  };
}

function readLog(settings: Settings): LogConfig {
  const dataDir = readDataDir(settings);
  return {
    databaseUrl: settings.find('DATABASE_URL', postgresUrl),
    dataDir,
    checkpointRegister: readRegister(settings, dataDir),
  };
}

function readRegister(settings: Settings, dataDir: string): string {
  return resolve(settings.get('CHECKPOINT_REGISTER', path, join(dataDir, 'checkpoint-register')));
}

function readDataDir(settings: Settings): string {
  return resolve(settings.get('DATA_DIR', path, '.data'));
}

function readLogLevel(settings: Settings): LogLevel {
  return settings.get('LOG_LEVEL', oneOf(...LOG_LEVELS), 'info');
}

/** The base address's host name. An IP address cannot be part of an origin; a log that has only that is `localhost`. */
function defaultLogDomain(baseUrl: string | undefined): string {
  const host = baseUrl === undefined ? 'localhost' : new URL(baseUrl).hostname;
  return host.startsWith('[') || isIP(host) !== 0 ? 'localhost' : host;
}
