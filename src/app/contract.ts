/** What the commands need of the composed service. Its module is loaded only by commands that run a server. */

import type { Config, DatabaseConfig, LogConfig, MigrateConfig, UpConfig } from '../config.js';
import type { EnvironmentName } from '../environment.js';

/** The functions that `app.ts` exports. */
export type App = {
  /** Each runs until `stop` is aborted and resolves when everything it started has stopped. */
  runUp(config: UpConfig, options: RunOptions): Promise<void>;
  runApi(config: Config, options: RunOptions): Promise<void>;
  runWorker(config: Config, options: RunOptions): Promise<void>;
  /** @returns the names of the migrations that were applied now */
  runMigrate(config: MigrateConfig): Promise<readonly string[]>;
  /** Opens database and register, hands over what can be done with logs, and closes them again. */
  withLogs<T>(config: LogConfig, use: (logs: LogManager) => Promise<T>): Promise<T>;
  /** The same with the keys of SECRET_KEY that the database knows. */
  withSecretKeys<T>(config: DatabaseConfig, use: (keys: SecretKeyManager) => Promise<T>): Promise<T>;
};

export type RunOptions = { readonly stop: AbortSignal; readonly onReady: (ready: Ready) => void };

/**
 * Addresses of a process that is up; a worker has only that for operators. `projectId` is the first project of `up`,
 * `newLogDomain` what it has made for its logs' origins to end in.
 */
export type Ready = {
  readonly baseUrl?: string;
  readonly verifyUrl?: string;
  readonly opsUrl: string;
  /** Set where the admin API has a listener of its own. */
  readonly adminUrl?: string;
  readonly projectId?: string;
  readonly newLogDomain?: string;
};

/** Where a log stands: its size in the tables, its newest published checkpoint, and the register's. */
export type LogStatus = {
  readonly origin: string;
  readonly environment: EnvironmentName;
  readonly epoch: number;
  readonly leaves: number;
  readonly publishedSize: number;
  readonly registerSize: number | undefined;
  readonly state: 'ok' | 'frozen' | 'register_missing' | 'closed';
  readonly reason: string | undefined;
};

/** What an operator can do about logs. */
export type LogManager = {
  status(): Promise<readonly LogStatus[]>;
  /** Begins a new epoch of the environment's log, under a new origin; the old one stays readable. Throws unless it is frozen. */
  newEpoch(environment: EnvironmentName): Promise<LogStatus>;
  /** Writes the tables' newest published checkpoints of logs that the register lacks into it. @returns their origins */
  fillRegister(): Promise<readonly string[]>;
};

/** A key of SECRET_KEY that processes over the database have worked with. */
export type SecretKeyStatus = {
  readonly id: string;
  readonly firstUsedAt: Date;
  /** Subscriptions whose secret is under it. */
  readonly webhooks: number;
};

/** What an operator can do about the keys of SECRET_KEY; none of it needs a key. */
export type SecretKeyManager = {
  /** Oldest first. */
  list(): Promise<readonly SecretKeyStatus[]>;
  /** Lets processes start without this key, or with another one under its id. Throws when it is not known. */
  forget(id: string): Promise<void>;
};
