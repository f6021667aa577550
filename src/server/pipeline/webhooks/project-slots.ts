/** A semaphore of request slots with fair shares for projects. */
export type ProjectSlots = {
  /** Waits for the project's share and acquires 1 to `wanted` slots. @returns the number acquired */
  take(projectId: string, wanted: number): Promise<number>;
  /** Releases slots. */
  release(projectId: string, count: number): void;
};

type Waiting = { wanted: number; resolve: (taken: number) => void };
type Project = { inUse: number; waiting: Waiting[] };

/** Minimum grant: every grant leads to a claim, whose statement costs the same for few rows as for many. */
function minimumOf(share: number): number {
  return Math.ceil(share / 16);
}

/**
 * Creates `total` slots. Each of n active projects gets at most `total / (n + 1)`, so that one more project always finds
 * room beside endpoints that never respond.
 */
export function createProjectSlots(total: number): ProjectSlots {
  const projects = new Map<string, Project>();
  const share = () => Math.max(1, Math.floor(total / (projects.size + 1)));
  const open = (projectId: string): Project => {
    const known = projects.get(projectId);
    if (known !== undefined) return known;
    const project: Project = { inUse: 0, waiting: [] };
    projects.set(projectId, project);
    return project;
  };
  const serve = (project: Project) => {
    for (let next = project.waiting[0]; next !== undefined; next = project.waiting[0]) {
      const room = share() - project.inUse;
      if (room < Math.min(next.wanted, minimumOf(share()))) return;
      project.waiting.shift();
      const taken = Math.min(room, next.wanted);
      project.inUse += taken;
      next.resolve(taken);
    }
  };
  return {
    take: (projectId, wanted) =>
      new Promise((resolve) => {
        const project = open(projectId);
        project.waiting.push({ wanted: Math.max(1, wanted), resolve });
        serve(project);
      }),
    release: (projectId, count) => {
      const project = open(projectId);
      project.inUse -= count;
      if (project.inUse > 0 || project.waiting.length > 0) {
        serve(project);
        return;
      }
      projects.delete(projectId);
      for (const other of projects.values()) serve(other);
    },
  };
}
