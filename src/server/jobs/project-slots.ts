/** Slots for concurrent work, such as requests, that projects share fairly. */
export type ProjectSlots = {
  /** Opens the share of a member of a project, such as a webhook subscription. */
  open(projectId: string, granted: () => void): SlotShare;
};

/** The slots of one member. */
export type SlotShare = {
  /** Sets how many slots the subscription can use at a time; 0 at first. */
  want(count: number): void;
  /**
   * Acquires a slot. If the project has none free, returns false, queues the member unless it is queued, and calls
   * `granted` once its turn has come. If the member has its share, returns false.
   */
  take(): boolean;
  release(): void;
  /** Ends the share and dequeues the member. Call it once all slots are released. */
  close(): void;
};

type Member = { inUse: number; wanted: number; granted: () => void };
type Project = {
  inUse: number;
  members: number;
  /** `wanting[i]` is the number of members that want more than i slots. */
  wanting: number[];
  waiting: Set<Member>;
};

/**
 * Caps each of n projects at `total / (n + 1)` slots, at least 1, so that a new project always finds a free one. Slots
 * that were acquired under a higher cap are kept. The members of a project have max-min fair shares of its cap: many
 * endpoints get one request at a time each, and so one connection, while few get many.
 */
export function createProjectSlots(total: number): ProjectSlots {
  const projects = new Map<string, Project>();
  const slotsOfProject = () => Math.max(1, Math.floor(total / (projects.size + 1)));
  const join = (projectId: string): Project => {
    const project = projects.get(projectId) ?? { inUse: 0, members: 0, wanting: [], waiting: new Set() };
    projects.set(projectId, project);
    project.members++;
    return project;
  };
  return {
    open: (projectId, granted) => {
      const project = join(projectId);
      const member: Member = { inUse: 0, wanted: 0, granted };
      return {
        want: (count) => setWanted(project, member, count),
        take: () => take(project, member, slotsOfProject()),
        release: () => {
          project.inUse--;
          member.inUse--;
          serve(project, slotsOfProject());
        },
        close: () => {
          setWanted(project, member, 0);
          project.waiting.delete(member);
          if (--project.members > 0) return;
          projects.delete(projectId);
          for (const other of projects.values()) serve(other, slotsOfProject());
        },
      };
    },
  };
}

/** Acquires one slot of a project. Returns its release; undefined if the project has its share. */
export function tryTakeSlot(slots: ProjectSlots, projectId: string): (() => void) | undefined {
  const share = slots.open(projectId, () => {});
  share.want(1);
  if (share.take())
    return () => {
      share.release();
      share.close();
    };
  share.close();
  return undefined;
}

function setWanted({ wanting }: Project, member: Member, count: number): void {
  for (; member.wanted < count; member.wanted++) wanting[member.wanted] = (wanting[member.wanted] ?? 0) + 1;
  for (; member.wanted > count; member.wanted--) wanting[member.wanted - 1]!--;
}

function take(project: Project, member: Member, slots: number): boolean {
  if (member.inUse >= Math.min(member.wanted, fairShare(slots, project.wanting))) return false;
  const isFree = project.waiting.size === 0 && project.inUse < slots;
  if (isFree) acquire(project, member);
  else project.waiting.add(member);
  return isFree;
}

/**
 * Max-min fair share: the largest number of slots that each member, and one more, can have, if none has more than it
 * wants; at least 1.
 */
function fairShare(slots: number, wanting: readonly number[]): number {
  let share = 0;
  let left = slots;
  for (const members of wanting) {
    left -= members + 1;
    if (left < 0) break;
    share++;
  }
  return Math.max(1, share);
}

/** Grants free slots to queued members. */
function serve(project: Project, slots: number): void {
  for (const member of project.waiting) {
    if (project.inUse >= slots) return;
    project.waiting.delete(member);
    acquire(project, member);
    member.granted();
  }
}

function acquire(project: Project, member: Member): void {
  project.inUse++;
  member.inUse++;
}
