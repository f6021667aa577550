/** Bounds of git's processes and of repeated attempts. */
export type GitLimits = {
  /** How often a write starts over because others move the branch. */
  readonly maxAttempts: number;
  /** How long a process may make no progress. */
  readonly stallMs: number;
  /** How long a fetch may take, and how large the local repository may get by it. */
  readonly fetchMs: number;
  readonly maxFetchBytes: number;
  /** How long a push may take. */
  readonly pushMs: number;
  /** How much memory each process may have. A server can make git read a list of branches without end. */
  readonly maxMemoryBytes: number;
  /** Size beyond that of one fetch from which the local repository is made anew before the next write. */
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
