/** Bounds of git's processes and of repeated attempts. */
export type GitLimits = {
  /** Maximum attempts of a write while others move the branch. */
  readonly maxAttempts: number;
  /** Stall timeout of a process. */
  readonly stallMs: number;
  /** Timeout of a fetch, and the maximum size of the local repository after it. */
  readonly fetchMs: number;
  readonly maxFetchBytes: number;
  /** Timeout of a push. */
  readonly pushMs: number;
  /** Memory limit of each process: a server can send an endless list of branches. */
  readonly maxMemoryBytes: number;
  /** Growth beyond the first fetch after which the local repository is recreated before the next write. */
  readonly maxRepositoryBytes: number;
};

export const DEFAULT_LIMITS: GitLimits = {
  maxAttempts: 10,
  stallMs: 30_000,
  fetchMs: 600_000,
  maxFetchBytes: 1024 ** 3,
  pushMs: 3_600_000,
  maxMemoryBytes: 1.5 * 1024 ** 3,
  maxRepositoryBytes: 64 * 1024 ** 2,
};
