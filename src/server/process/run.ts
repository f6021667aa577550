/** The processes and tools of the service. */

import type {
  ArchiveConfig,
  Config,
  DatabaseConfig,
  LogConfig,
  MigrateConfig,
  UpConfig,
} from '../../config/config.js';
import type { Storage } from '../../config/object-storage.js';
import { type DsseKeyManager, dsseKeyManager } from '../attestations/signing/dsse-key-manager.js';
import type { StampWitness } from '../attestations/stamps/stamp-witness.js';
import { aborted, type ShutdownHooks, withShutdownHooks } from '../core/shutdown.js';
import { connectPool, type Pool } from '../database/connect.js';
import { assertMigrated, migrate } from '../database/migrate.js';
import { assertSession } from '../database/session.js';
import { openLogDomain } from '../log/log-domain.js';
import { openRegister } from '../witnessing/register/open-register.js';
import type { Ready } from './addresses.js';
import { openParent, type Parent } from './api/api-process.js';
import { type BackupReader, openBackup } from './backup-reader.js';
import { type LogArchiver, openLogArchiver } from './log-archiver.js';
import { type LogManager, logManager } from './log-manager.js';
import { openStampWitnesses, openWitnesses } from './open-witnesses.js';
import { type SecretKeyManager, secretKeyManager } from './secret-key-manager.js';
import { startProcess } from './start-process.js';
import { openLog } from './telemetry.js';
import {
  embeddedStamps,
  findConnections,
  readStarted,
  startEmbedded,
  writeConnections,
  writeCredentials,
} from './up.js';

export type RunOptions = {
  readonly stop: AbortSignal;
  readonly onReady: (ready: Ready) => void;
  /** Called as each step of the start of `attest up` begins, with its name. */
  readonly onStep?: (step: string) => void;
};

const TOOL = { statementTimeoutMs: 60_000, isPatient: true };

/** Runs api, worker and embedded servers until `stop` aborts. Throws if an embedded server exits unexpectedly. */
export async function runUp(
  upConfig: UpConfig,
  { stop, onReady, onStep = () => {} }: RunOptions,
): Promise<void> {
  const parent = openParent();
  if (parent !== undefined) {
    const open = async () => {
      const config = await readStarted(upConfig);
      return {
        config,
        stampWitnesses: [await embeddedStamps(config), ...openStampWitnesses(config.witnesses)],
      };
    };
    return runShared(parent, stop, open, upConfig);
  }
  await withShutdownHooks(async (hooks) => {
    const lines = openLog(upConfig, hooks);
    const { config, witnesses, failed } = await startEmbedded(upConfig, { log: lines.log, onStep }, hooks);
    const pool = openToolPool(config.databaseUrl, hooks);
    onStep('migrating the database');
    await migrate(pool);
    await writeConnections(config);
    const { logDomain, isNew } = await openLogDomain(pool, config);
    const opened = [...witnesses, ...openWitnesses(config.witnesses)];
    onStep('starting worker and API');
    const ready = await startProcess({
      config: { ...config, logDomain },
      roles: { api: true, worker: true },
      witnesses: opened,
      stampWitnesses: [await embeddedStamps(config), ...openStampWitnesses(config.witnesses)],
      ...lines,
      hooks,
    });
    const { project_id: projectId } = await writeCredentials(pool, config, ready);
    onReady({ ...ready, projectId, ...(isNew ? { newLogDomain: logDomain } : {}) });
    await Promise.race([aborted(stop), failed]);
  });
}

/** Runs an API process, or as many as the configuration says, until `stop` aborts. */
export async function runApi(config: Config, options: RunOptions): Promise<void> {
  const parent = openParent();
  const stampWitnesses = openStampWitnesses(config.witnesses);
  const open = async () => ({ config, stampWitnesses });
  if (parent !== undefined) return runShared(parent, options.stop, open, config);
  await runRole(config, { api: true, worker: false }, options);
}

/** Runs one of the API processes that share a port until it, or its parent, is stopped. */
async function runShared(
  parent: Parent,
  stop: AbortSignal,
  open: () => Promise<{ config: Config; stampWitnesses: StampWitness[] }>,
  logging: Parameters<typeof openLog>[0],
): Promise<void> {
  try {
    await withShutdownHooks(async (hooks) => {
      const lines = openLog(logging, hooks);
      const roles = { api: true, worker: false };
      await startProcess({ ...(await open()), roles, witnesses: [], ...lines, hooks, parent });
      await Promise.race([aborted(stop), aborted(parent.stop)]);
    });
  } catch (error) {
    await parent.failed(error as Error);
  }
}

/** Runs a worker process until `stop` aborts. */
export async function runWorker(config: Config, options: RunOptions): Promise<void> {
  await runRole(config, { api: false, worker: true }, options);
}

async function runRole(
  config: Config,
  roles: { api: boolean; worker: boolean },
  { stop, onReady }: RunOptions,
) {
  await withShutdownHooks(async (hooks) => {
    const lines = openLog(config, hooks);
    const witnesses = roles.worker ? openWitnesses(config.witnesses) : [];
    const stampWitnesses = openStampWitnesses(config.witnesses);
    onReady(await startProcess({ config, roles, witnesses, stampWitnesses, ...lines, hooks }));
    await aborted(stop);
  });
}

/** Applies pending migrations. @returns their names */
export async function runMigrate({ databaseUrl }: MigrateConfig): Promise<readonly string[]> {
  return withShutdownHooks(async (hooks) => {
    const pool = openToolPool(databaseUrl, hooks);
    await assertSession(pool, TOOL);
    return migrate(pool);
  });
}

/** Opens database and register, calls `use` with the log manager, and closes both. */
export async function withLogs<T>(config: LogConfig, use: (logs: LogManager) => Promise<T>): Promise<T> {
  return withDatabase(config, async (pool) =>
    use(logManager(pool, await openRegister(config.checkpointRegister))),
  );
}

/** Opens database, register and the store of an archive, calls `use` with the archiver, and closes them. */
export async function withArchive<T>(
  config: ArchiveConfig,
  place: Storage,
  use: (archiver: LogArchiver) => Promise<T>,
): Promise<T> {
  return withDatabase(config, (pool) => openLogArchiver(pool, config, place, use));
}

/** Opens a restored backup, calls `use` with its reader, and closes it. */
export async function withBackup<T>(
  config: DatabaseConfig,
  use: (backup: BackupReader) => Promise<T>,
): Promise<T> {
  return withDatabase(config, async (pool) => use(await openBackup(pool)));
}

/** Opens the database, calls `use` with the manager of SECRET_KEY's keys, and closes it. */
export async function withSecretKeys<T>(
  config: DatabaseConfig,
  use: (keys: SecretKeyManager) => Promise<T>,
): Promise<T> {
  return withDatabase(config, (pool) => use(secretKeyManager(pool)));
}

/** Opens the database, calls `use` with the manager of the DSSE keys, and closes it. */
export async function withDsseKeys<T>(
  config: DatabaseConfig,
  use: (keys: DsseKeyManager) => Promise<T>,
): Promise<T> {
  return withDatabase(config, (pool) => use(dsseKeyManager(pool)));
}

async function withDatabase<T>(config: DatabaseConfig, use: (pool: Pool) => Promise<T>): Promise<T> {
  return withShutdownHooks(async (hooks) => {
    const databaseUrl = config.databaseUrl ?? (await findConnections(config.dataDir))?.databaseUrl;
    if (databaseUrl === undefined) {
      throw new Error(
        `no service has run over ${config.dataDir}: start one with attest up, or set DATABASE_URL`,
      );
    }
    const pool = openToolPool(databaseUrl, hooks);
    await assertSession(pool, TOOL).catch((error: Error) => {
      const hint = config.databaseUrl === undefined ? ': is attest up running?' : '';
      throw new Error(`${error.message}${hint}`, { cause: error });
    });
    await assertMigrated(pool);
    return use(pool);
  });
}

function openToolPool(url: string, hooks: ShutdownHooks): Pool {
  const pool = connectPool({ url, name: 'tool', max: 2, ...TOOL });
  hooks.add(() => pool.end({ timeout: 5 }));
  return pool;
}
