/** The processes and tools of the service, each put together from `app/`. */
import type { KeyManager, LogManager, RunOptions } from './app/contract.js';
import { keyManager } from './app/keys.js';
import { logManager } from './app/logs.js';
import { startProcess } from './app/processes.js';
import { openRegister } from './app/register-file.js';
import { type Stops, withStops } from './app/stops.js';
import { findConnections, startEmbedded, writeConnections, writeCredentials } from './app/up.js';
import { openWitnesses } from './app/witnesses.js';
import type { Config, KeysConfig, LogConfig, MigrateConfig, UpConfig } from './config.js';
import { findSecretKeys } from './embedded/secrets.js';
import { createLogger, flushLogger, type Logger } from './logger.js';
import { announceKeyChange } from './queue/broadcast.js';
import { openQueue } from './queue/jetstream.js';
import { connectPool, type Pool } from './store/connect.js';
import { migrate } from './store/migrate.js';

const TOOL_STATEMENT_TIMEOUT_MS = 60_000;

/** Runs everything on this machine until told to stop; throws when a server it started ends by itself. */
export async function runUp(upConfig: UpConfig, { stop, onReady }: RunOptions): Promise<void> {
  await withStops(async (stops) => {
    const log = openLog(upConfig.logLevel, stops);
    const { config, witnesses, failed } = await startEmbedded(upConfig, log, stops);
    const pool = openToolPool(config.databaseUrl, stops);
    await migrate(pool);
    await writeConnections(config);
    const asked = [...witnesses, ...openWitnesses(config.witnesses)];
    const ready = await startProcess({
      config,
      roles: { api: true, worker: true },
      witnesses: asked,
      log,
      stops,
    });
    await writeCredentials(pool, config, ready);
    onReady(ready);
    await Promise.race([aborted(stop), failed]);
  });
}

/** Runs an API process until told to stop. */
export async function runApi(config: Config, options: RunOptions): Promise<void> {
  await runRole(config, { api: true, worker: false }, options);
}

/** Runs a worker process until told to stop. */
export async function runWorker(config: Config, options: RunOptions): Promise<void> {
  await runRole(config, { api: false, worker: true }, options);
}

async function runRole(
  config: Config,
  roles: { api: boolean; worker: boolean },
  { stop, onReady }: RunOptions,
) {
  await withStops(async (stops) => {
    const log = openLog(config.logLevel, stops);
    const witnesses = roles.worker ? openWitnesses(config.witnesses) : [];
    onReady(await startProcess({ config, roles, witnesses, log, stops }));
    await aborted(stop);
  });
}

/** Brings the database up to this version. @returns the names of the migrations that ran */
export async function runMigrate({ databaseUrl }: MigrateConfig): Promise<readonly string[]> {
  return withStops((stops) => migrate(openToolPool(databaseUrl, stops)));
}

/** Opens the database, hands over what can be done with keys, and closes it again. */
export async function withKeys<T>(config: KeysConfig, use: (keys: KeyManager) => Promise<T>): Promise<T> {
  return withStops(async (stops) => {
    const connections = await findConnections(config.dataDir);
    const databaseUrl = config.databaseUrl ?? connections?.databaseUrl;
    const secretKeys = config.secretKeys ?? (await findSecretKeys(config.dataDir));
    if (databaseUrl === undefined || secretKeys === undefined) {
      throw new Error(
        `no service has run over ${config.dataDir}: start one with attest up, or set DATABASE_URL and SECRET_KEY`,
      );
    }
    const log = openLog('silent', stops);
    const announce = (id: string) => announceChange(config.natsUrl ?? connections?.natsUrl, id, log);
    return use(keyManager(openToolPool(databaseUrl, stops), secretKeys, announce));
  });
}

/** Opens database and register, hands over what can be done with logs, and closes them again. */
export async function withLogs<T>(config: LogConfig, use: (logs: LogManager) => Promise<T>): Promise<T> {
  return withStops(async (stops) => {
    const databaseUrl = config.databaseUrl ?? (await findConnections(config.dataDir))?.databaseUrl;
    if (databaseUrl === undefined) {
      throw new Error(
        `no service has run over ${config.dataDir}: start one with attest up, or set DATABASE_URL`,
      );
    }
    return use(logManager(openToolPool(databaseUrl, stops), await openRegister(config.checkpointRegister)));
  });
}

/** Tells running processes of a changed key; without NATS they notice within ten seconds. */
async function announceChange(natsUrl: string | undefined, apiKeyId: string, log: Logger): Promise<void> {
  if (natsUrl === undefined) return;
  try {
    const queue = await openQueue({ url: natsUrl, prefix: 'jobs', name: 'attest keys', log });
    announceKeyChange(queue, apiKeyId);
    await queue.close();
  } catch {
    // The key is revoked all the same.
  }
}

function openLog(level: Config['logLevel'], stops: Stops): Logger {
  const log = createLogger({ level, fd: 2 });
  stops.add(() => flushLogger(log));
  return log;
}

function openToolPool(url: string, stops: Stops): Pool {
  const pool = connectPool({ url, name: 'tool', max: 2, statementTimeoutMs: TOOL_STATEMENT_TIMEOUT_MS });
  stops.add(() => pool.end({ timeout: 5 }));
  return pool;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
