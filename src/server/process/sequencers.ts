import type { Principal } from '../core/principal.js';
import type { Directory } from '../logs/log-cache.js';
import { type AcceptDeps, type Accepter, createAccepter } from '../pipeline/sequence.js';

/** The accepters of the active logs, made when first needed. */
export type Accepters = {
  of(environment: Principal['environment']): Promise<Accepter>;
  /** How many submissions wait to be written. */
  queued(): number;
  /** Resolves when every acknowledged or waiting submission has its outcome. */
  close(): Promise<void>;
};

/** @param open what an accepter of one log is made of */
export function createAccepters(directory: Directory, open: (logId: number) => AcceptDeps): Accepters {
  const accepters = new Map<number, Accepter>();
  return {
    of: async (environment) => {
      const { id } = await directory.getActiveLog(environment);
      const known = accepters.get(id);
      if (known !== undefined) return known;
      const made = createAccepter(open(id));
      accepters.set(id, made);
      return made;
    },
    queued: () => [...accepters.values()].reduce((sum, accepter) => sum + accepter.queued(), 0),
    close: async () => {
      await Promise.all([...accepters.values()].map((accepter) => accepter.close()));
    },
  };
}
