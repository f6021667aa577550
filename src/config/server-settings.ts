/** Settings that all server processes share. */
import { isIPv4 } from 'node:net';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { type RegisterConfig, readRegisterConfig } from './checkpoint-register.js';
import { type LogLanes, logLanes, ONE_LOG_EACH } from './log-lanes.js';
import { type Storage, storage } from './object-storage.js';
import { type OidcConfig, readOidc } from './oidc-settings.js';
import { type OpenLimits, readOpenLimits } from './open-limits.js';
import { standbyUrl } from './server-urls.js';
import {
  bindAddress,
  bool,
  directory,
  duration,
  hostName,
  integer,
  issuers,
  names,
  oneOf,
  origins,
  path,
  port,
  publicUrl,
  searchPath,
} from './setting-types.js';
import type { Settings } from './settings.js';
import { readTelemetry, type TelemetryConfig } from './telemetry-settings.js';
import { readTlsFiles, type TlsFiles } from './tls-files.js';
import { type QuorumConfig, readWitnessPolicy, reportImpossibleQuorums } from './witnesses/witness-policy.js';
import { readWitnesses, reportInfrequentWitnesses, type WitnessConfig } from './witnesses/witnesses.js';

/** Where a server process listens. */
export type Listeners = {
  /** Where the API listens; port 0 picks a free one. */
  readonly host: string;
  readonly port: number;
  /** Where `/livez`, `/readyz` and `/metrics` listen. */
  readonly opsHost: string;
  readonly opsPort: number;
};

/** The settings of a server process. */
export type ServerSettings = Listeners & {
  /** Where the admin API listens; if `adminPort` is undefined, on the API's listener. */
  readonly adminHost: string;
  readonly adminPort: number | undefined;
  /** Whether the API has the dashboard, for which it needs the admin token or an identity provider. */
  readonly hasDashboard: boolean;
  /** The identity provider by which people sign in to it. */
  readonly oidc: OidcConfig | undefined;
  /** The address of the dashboard without `/dashboard`, as configured. */
  readonly dashboardUrl: string | undefined;
  /** Absolute. */
  readonly dataDir: string;
  /** As configured; `publicUrls` has the defaults. */
  readonly baseUrl: string | undefined;
  readonly verifyUrl: string | undefined;
  /** Domain of the logs' origins; may be undefined if the database already has logs. */
  readonly logDomain: string | undefined;
  readonly logLanes: LogLanes;
  readonly checkpointRegister: RegisterConfig;
  /** Where workers write the public log to, if anywhere. */
  readonly logStorage: Storage | undefined;
  /** External witnesses, without those that `attest up` embeds. */
  readonly witnesses: readonly WitnessConfig[];
  /** Quorums of these witnesses that a batch needs. */
  readonly witnessPolicy: readonly QuorumConfig[];
  readonly witnessDeadlineMs: number;
  readonly batchIntervalMs: number;
  readonly batchMaxLeaves: number;
  /** Directory of additional metadata schemas. */
  readonly schemaDir: string | undefined;
  readonly idempotencyRetentionMs: number;
  /** Retention of webhook deliveries and their attempts. */
  readonly webhookHistoryMs: number;
  /** Retention of audit log entries. */
  readonly auditRetentionMs: number;
  /** Of all temporary files in which a worker prepares the objects of exports. */
  readonly exportSpoolBytes: number;
  /** The buckets and account hosts of exports that the operator's own cloud credentials may be used for. */
  readonly ambientCredentials: readonly string[];
  /** PEM file of certificate authorities to trust beside Node's. Node reads it by itself; other programs get its path. */
  readonly extraCaFile: string | undefined;
  /** The folders in which programs are looked for, as in `PATH`. */
  readonly programPath: string | undefined;
  /** Whether webhooks may use http and non-public addresses. */
  readonly allowInsecureDestinations: boolean;
  /** The issuers of tokens whose keys may be read at non-public addresses. */
  readonly privateIssuers: readonly string[];
  readonly tls: TlsFiles | undefined;
  /** Web origins allowed by CORS; `['*']` for all. */
  readonly corsOrigins: readonly string[];
  /** Whether strangers find bundles by an artifact, of projects without a setting of their own. */
  readonly publicLookup: boolean;
  readonly logLevel: LogLevel;
  /** What is exported by OTLP; undefined: nothing. */
  readonly telemetry: TelemetryConfig | undefined;
  /** JetStream replicas of the stream. */
  readonly natsReplicas: 1 | 3;
  /** Maximum Postgres connections of one process. */
  readonly poolSize: number;
  /** The synchronous standby: serves reads while no primary responds. */
  readonly databaseReadUrl: string | undefined;
  /** API processes that share the API's port; with 1 the process itself serves it. */
  readonly apiProcesses: number;
  /** Limits of the API's listener. */
  readonly openLimits: OpenLimits;
};

/** An API process under load keeps about two cores busy, with Postgres and the worker. */
const CORES_PER_PROCESS = 2;
const MAX_DEFAULT_PROCESSES = 8;

export type LogLevel = (typeof LOG_LEVELS)[number];

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** Reads the server settings. `isLocal` selects the defaults for a service on this machine only. */
export function readServerSettings(settings: Settings, { isLocal }: { isLocal: boolean }): ServerSettings {
  const listeners = readListeners(settings, isLocal ? '127.0.0.1' : '0.0.0.0');
  const dataDir = readDataDir(settings);
  const baseUrl = settings.find('BASE_URL', publicUrl);
  const witnessPolicy = readWitnessPolicy(settings);
  const witnesses = readWitnesses(settings, witnessPolicy);
  const witnessDeadlineMs = settings.get('WITNESS_DEADLINE', duration('1m', '30d'), 3_600_000);
  reportInfrequentWitnesses(settings, witnesses, witnessPolicy, witnessDeadlineMs);
  reportImpossibleQuorums(settings, witnessPolicy, witnesses);
  return {
    ...listeners,
    ...readAdminAddress(settings, { PORT: listeners.port, OPS_PORT: listeners.opsPort }),
    hasDashboard: settings.get('DASHBOARD', bool, true),
    oidc: readOidc(settings),
    dashboardUrl: settings.find('DASHBOARD_URL', publicUrl),
    dataDir,
    baseUrl,
    verifyUrl: settings.find('VERIFY_URL', publicUrl),
    logDomain: settings.find('LOG_DOMAIN', hostName),
    logLanes: settings.get('LOGS', logLanes, ONE_LOG_EACH),
    checkpointRegister: readRegisterConfig(settings, dataDir),
    logStorage: settings.find('LOG_STORAGE', storage),
    witnesses,
    witnessPolicy,
    witnessDeadlineMs,
    batchIntervalMs: settings.get('BATCH_INTERVAL', duration('10ms', '1h'), 1_000),
    batchMaxLeaves: settings.get('BATCH_MAX_LEAVES', integer(1, 1_048_576), 65_536),
    schemaDir: settings.find('SCHEMA_DIR', directory),
    idempotencyRetentionMs: settings.get('IDEMPOTENCY_RETENTION', duration('1m', '30d'), 86_400_000),
    webhookHistoryMs: settings.get('WEBHOOK_HISTORY', duration('7d', '365d'), 30 * 86_400_000),
    auditRetentionMs: settings.get('AUDIT_RETENTION', duration('30d', '3650d'), 400 * 86_400_000),
    exportSpoolBytes: settings.get('EXPORT_SPOOL_MIB', integer(64, 1_048_576), 4_096) * 1024 * 1024,
    ambientCredentials: settings.get('ALLOW_AMBIENT_CREDENTIALS', names, []),
    extraCaFile: settings.find('NODE_EXTRA_CA_CERTS', path),
    allowInsecureDestinations: settings.get(
      'ALLOW_INSECURE_DESTINATIONS',
      bool,
      isLocal && isLoopback(listeners.host),
    ),
    privateIssuers: settings.get('PRIVATE_ISSUERS', issuers, []),
    programPath: settings.find('PATH', searchPath),
    tls: readTlsFiles(settings, path),
    corsOrigins: settings.get('CORS_ORIGINS', origins, []),
    publicLookup: settings.get('PUBLIC_LOOKUP', bool, false),
    logLevel: readLogLevel(settings),
    telemetry: readTelemetry(settings),
    natsReplicas: settings.get('NATS_REPLICAS', oneOf('1', '3'), '1') === '3' ? 3 : 1,
    poolSize: settings.get('PG_POOL', integer(2, 500), 10),
    databaseReadUrl: settings.find('DATABASE_READ_URL', standbyUrl),
    apiProcesses: settings.get('API_PROCESSES', integer(1, 64), isLocal ? defaultProcesses() : 1),
    openLimits: readOpenLimits(settings),
  };
}

/** Whether only this machine reaches an address. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

/** API processes of `attest up`: one per two cores, at most eight. */
function defaultProcesses(): number {
  const wanted = Math.floor(availableParallelism() / CORES_PER_PROCESS);
  return Math.max(1, Math.min(wanted, MAX_DEFAULT_PROCESSES));
}

/** Where a process listens; `host` is the default of HOST. */
export function readListeners(settings: Settings, host: string): Listeners {
  return {
    host: settings.get('HOST', bindAddress, host),
    port: settings.get('PORT', port, 8080),
    ...readOpsListener(settings),
  };
}

/** Reads the address of the ops listener. */
export function readOpsListener(settings: Settings): Pick<Listeners, 'opsHost' | 'opsPort'> {
  return {
    opsHost: settings.get('OPS_HOST', bindAddress, '127.0.0.1'),
    opsPort: settings.get('OPS_PORT', port, 9090),
  };
}

/** Rejects an ADMIN_PORT equal to another port, and ADMIN_HOST without ADMIN_PORT. */
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

/** Absolute path of the data directory. */
export function readDataDir(settings: Settings): string {
  return resolve(settings.get('DATA_DIR', path, '.data'));
}

/** The minimum level of log lines. */
export function readLogLevel(settings: Settings): LogLevel {
  return settings.get('LOG_LEVEL', oneOf(...LOG_LEVELS), 'info');
}
