/** Places for concurrent work, shared fairly by projects. */
export type ProjectShares = {
  /** Takes a place. Returns false if the project has its share already. */
  take(projectId: string): boolean;
  release(projectId: string): void;
};

/**
 * Creates `total` places. Each of n active projects gets at most `total / (n + 1)`, but one at least, so that one more
 * project always finds room.
 */
export function createProjectShares(total: number): ProjectShares {
  const inUse = new Map<string, number>();
  return {
    take(projectId) {
      const used = inUse.get(projectId) ?? 0;
      const projects = inUse.size + (used === 0 ? 1 : 0);
      if (used >= Math.max(1, Math.floor(total / (projects + 1)))) return false;
      inUse.set(projectId, used + 1);
      return true;
    },
    release(projectId) {
      const used = (inUse.get(projectId) ?? 1) - 1;
      if (used > 0) inUse.set(projectId, used);
      else inUse.delete(projectId);
    },
  };
}
