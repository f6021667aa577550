/** What the commands need of the composed service. Its module is loaded only by commands that run a server. */
import type { Config, KeysConfig, MigrateConfig, UpConfig } from '../config.js';
import type { ApiKeyRow } from '../store/api-keys.js';

/** The functions that `app.ts` exports. */
export type App = {
  /** Each runs until `stop` is aborted and resolves when everything it started has stopped. */
  runUp(config: UpConfig, options: RunOptions): Promise<void>;
  runApi(config: Config, options: RunOptions): Promise<void>;
  runWorker(config: Config, options: RunOptions): Promise<void>;
  /** @returns the names of the migrations that were applied now */
  runMigrate(config: MigrateConfig): Promise<readonly string[]>;
  /** Opens the database, hands over what can be done with keys, and closes it again. */
  withKeys<T>(config: KeysConfig, use: (keys: KeyManager) => Promise<T>): Promise<T>;
};

export type RunOptions = { readonly stop: AbortSignal; readonly onReady: (ready: Ready) => void };

/** Addresses of a process that is up; a worker has only the last. */
export type Ready = { readonly baseUrl?: string; readonly verifyUrl?: string; readonly opsUrl: string };

/** A key to make. Without a project it is the only one there is; without scopes it has all. */
export type KeyRequest = {
  readonly environment: 'live' | 'test';
  readonly projectId: string | undefined;
  readonly name: string;
  readonly scopes: readonly string[] | undefined;
  readonly expiresAt: Date | undefined;
};

export type KeyManager = {
  /** The key itself is in the answer and nowhere else. */
  create(request: KeyRequest): Promise<{ key: string; row: ApiKeyRow }>;
  /** Newest first. */
  list(projectId: string | undefined): Promise<readonly ApiKeyRow[]>;
  /** @returns the key's row, or undefined when there is no such key; revoking again changes nothing */
  revoke(id: string): Promise<ApiKeyRow | undefined>;
};
