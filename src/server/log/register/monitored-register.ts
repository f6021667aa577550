import { type Register, RegisterError } from './register.js';

/** A register that remembers failed writes. */
export type MonitoredRegister = Register & {
  /** Why the log's last write failed. Undefined once that entry, or a later one, is stored. */
  findProblem(origin: string): string | undefined;
};

/** Remembers each log's last failed write until any process stores that entry or a later one. */
export function monitorWrites(register: Register): MonitoredRegister {
  const failed = new Map<string, { size: number; reason: string }>();
  const standing = (origin: string, size: number) => {
    const failure = failed.get(origin);
    if (failure !== undefined && size >= failure.size) failed.delete(origin);
  };
  return {
    location: register.location,
    read: async (origin) => {
      const entry = await register.read(origin);
      if (entry !== undefined) standing(origin, entry.size);
      return entry;
    },
    replace: async (before, next) => {
      try {
        const isDone = await register.replace(before, next);
        if (isDone) standing(next.origin, next.size);
        return isDone;
      } catch (error) {
        if (error instanceof RegisterError) {
          failed.set(next.origin, { size: next.size, reason: error.message });
        }
        throw error;
      }
    },
    findProblem: (origin) => failed.get(origin)?.reason,
  };
}
