/** The settings that every server process has, whichever part of the service it runs. */
import { join, resolve } from 'node:path';
import { directory } from './setting-files.js';
import {
  bindAddress,
  bool,
  cidrRanges,
  duration,
  hostName,
  integer,
  oneOf,
  origins,
  path,
  port,
  publicUrl,
} from './setting-types.js';
import type { Settings } from './settings.js';
import { readTlsFiles, type TlsFiles } from './tls-files.js';
import { readWitnesses, reportInfrequentWitnesses, type WitnessConfig } from './witnesses.js';

/** Read by `readServerSettings`. */
export type ServerSettings = {
  /** Where the API listens; a port of 0 is any free one. */
  readonly host: string;
  readonly port: number;
  /** Where `/livez`, `/readyz` and `/metrics` listen. */
  readonly opsHost: string;
  readonly opsPort: number;
  /** Where the admin API listens; without a port of its own it is served where the API is. */
  readonly adminHost: string;
  readonly adminPort: number | undefined;
  /** Absolute. */
  readonly dataDir: string;
  /** As set; `publicUrls` knows what they are when not. */
  readonly baseUrl: string | undefined;
  readonly verifyUrl: string | undefined;
  /** The host name that the logs' origins end in, as set; a database that has logs knows it. */
  readonly logDomain: string | undefined;
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
  /** How long entries of the audit log are kept. */
  readonly auditRetentionMs: number;
  /** Whether webhooks may go to http and to addresses that are not public. */
  readonly allowInsecureDestinations: boolean;
  readonly tls: TlsFiles | undefined;
  /** Web origins that may call the API from a page; `['*']` for all. */
  readonly corsOrigins: readonly string[];
  readonly logLevel: LogLevel;
  /** How many servers of a NATS cluster keep the stream. */
  readonly natsReplicas: 1 | 3;
  /** Connections to Postgres that one process holds at most. */
  readonly poolSize: number;
  /** What the API's listener holds open at most. */
  readonly openLimits: OpenLimits;
};

/** Connections, requests and bytes of bodies that are open at a time: in all, and of one address. */
type OpenLimits = {
  readonly maxConnections: number;
  readonly maxRequests: number;
  readonly maxHeldBytes: number;
  readonly maxConnectionsPerPeer: number;
  readonly maxRequestsPerPeer: number;
  /** Addresses and networks of proxies, which many clients share: only what holds for all binds them. */
  readonly trustedProxies: readonly string[];
};

export type LogLevel = (typeof LOG_LEVELS)[number];

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** Reads them; an `isLocal` service is one for this machine alone. */
export function readServerSettings(settings: Settings, { isLocal }: { isLocal: boolean }): ServerSettings {
  const host = settings.get('HOST', bindAddress, isLocal ? '127.0.0.1' : '0.0.0.0');
  const apiPort = settings.get('PORT', port, 8080);
  const opsPort = settings.get('OPS_PORT', port, 9090);
  const dataDir = readDataDir(settings);
  const baseUrl = settings.find('BASE_URL', publicUrl);
  const witnesses = readWitnesses(settings);
  const witnessDeadlineMs = settings.get('WITNESS_DEADLINE', duration('1m', '30d'), 3_600_000);
  reportInfrequentWitnesses(settings, witnesses, witnessDeadlineMs);
  return {
    host,
    port: apiPort,
    opsHost: settings.get('OPS_HOST', bindAddress, '127.0.0.1'),
    opsPort,
    ...readAdminAddress(settings, { PORT: apiPort, OPS_PORT: opsPort }),
    dataDir,
    baseUrl,
    verifyUrl: settings.find('VERIFY_URL', publicUrl),
    logDomain: settings.find('LOG_DOMAIN', hostName),
    checkpointRegister: readCheckpointRegister(settings, dataDir),
    witnesses,
    witnessDeadlineMs,
    batchIntervalMs: settings.get('BATCH_INTERVAL', duration('10ms', '1h'), 1_000),
    batchMaxLeaves: settings.get('BATCH_MAX_LEAVES', integer(1, 1_048_576), 65_536),
    schemaDir: settings.find('SCHEMA_DIR', directory),
    idempotencyRetentionMs: settings.get('IDEMPOTENCY_RETENTION', duration('1m', '30d'), 86_400_000),
    webhookHistoryMs: settings.get('WEBHOOK_HISTORY', duration('7d', '365d'), 30 * 86_400_000),
    auditRetentionMs: settings.get('AUDIT_RETENTION', duration('30d', '3650d'), 400 * 86_400_000),
    allowInsecureDestinations: settings.get('ALLOW_INSECURE_DESTINATIONS', bool, isLocal),
    tls: readTlsFiles(settings, path),
    corsOrigins: settings.get('CORS_ORIGINS', origins, []),
    logLevel: readLogLevel(settings),
    natsReplicas: settings.get('NATS_REPLICAS', oneOf('1', '3'), '1') === '3' ? 3 : 1,
    poolSize: settings.get('PG_POOL', integer(2, 500), 10),
    openLimits: readOpenLimits(settings),
  };
}

/** A port that another listener of the process has would serve the admin API there, or end the start half way. */
function readAdminAddress(
  settings: Settings,
  others: Record<string, number>,
): Pick<ServerSettings, 'adminHost' | 'adminPort'> {
  const adminHost = settings.find('ADMIN_HOST', bindAddress);
  const adminPort = settings.find('ADMIN_PORT', port);
  if (adminHost !== undefined && adminPort === undefined) {
    settings.report({ name: 'ADMIN_HOST', problem: 'is set', expected: 'a valid ADMIN_PORT beside it' });
  }
  for (const [name, other] of Object.entries(others)) {
    if (adminPort === undefined || adminPort === 0 || adminPort !== other) continue;
    const problem = `is ${adminPort}, as ${name} is`;
    settings.report({ name: 'ADMIN_PORT', problem, expected: 'a port of its own' });
  }
  return { adminHost: adminHost ?? '127.0.0.1', adminPort };
}

function readOpenLimits(settings: Settings): OpenLimits {
  const count = integer(1, 1_000_000);
  return {
    maxConnections: settings.get('MAX_CONNECTIONS', count, 10_000),
    maxRequests: settings.get('MAX_REQUESTS', count, 4_096),
    maxHeldBytes: settings.get('MAX_BODY_MIB', integer(4, 16_384), 64) * 1024 * 1024,
    maxConnectionsPerPeer: settings.get('MAX_PEER_CONNECTIONS', count, 1_000),
    maxRequestsPerPeer: settings.get('MAX_PEER_REQUESTS', count, 1_000),
    trustedProxies: settings.get('TRUSTED_PROXIES', cidrRanges, ['127.0.0.0/8', '::1']),
  };
}

/** Absolute path of the folder that remembers published checkpoints. */
export function readCheckpointRegister(settings: Settings, dataDir: string): string {
  return resolve(settings.get('CHECKPOINT_REGISTER', path, join(dataDir, 'checkpoint-register')));
}

/** Absolute path of the folder where files are kept. */
export function readDataDir(settings: Settings): string {
  return resolve(settings.get('DATA_DIR', path, '.data'));
}

/** From which level on log lines are written. */
export function readLogLevel(settings: Settings): LogLevel {
  return settings.get('LOG_LEVEL', oneOf(...LOG_LEVELS), 'info');
}
