import { DestinationError } from '../destinations/destination.js';

/** The share of the budget for the objects of one project; a single object may exceed it. */
const SHARE_OF_A_PROJECT = 0.25;
const MIB = 1024 * 1024;

/** The bytes of one object in temporary files. */
export type SpoolAccount = {
  /**
   * Reserves bytes before they are written; waits until the budget has them. Rejects with `DestinationError` if the object is
   * larger than the whole budget, with `SpoolYield` if it must release its bytes to an older object, and with the reason of
   * `signal`.
   */
  add: (bytes: number, signal: AbortSignal) => Promise<void>;
  /** Releases all its bytes. */
  close: () => void;
};

/** Bounds the bytes of all temporary files of a process. */
export type SpoolBudget = {
  open: (projectId: string) => SpoolAccount;
  bytesInUse: () => number;
};

/** The object must be spooled again from its beginning. */
export class SpoolYield extends Error {
  override readonly name = 'SpoolYield';
}

type Waiting = { bytes: number; resolve: () => void; reject: (error: Error) => void };
type Account = { projectId: string; held: number; waiting: Waiting | undefined };

/**
 * Creates a budget of `maxBytes`. Objects reserve in the order in which they were opened. In a deadlock, where each waits for
 * the bytes of another, the youngest yields.
 */
export function createSpoolBudget(maxBytes: number): SpoolBudget {
  /** The oldest first. */
  const accounts = new Set<Account>();
  const sum = (of: Iterable<Account>) => [...of].reduce((total, { held }) => total + held, 0);
  const hasShare = (account: Account, bytes: number) => {
    const own = [...accounts].filter(({ projectId }) => projectId === account.projectId);
    const others = sum(own) - account.held;
    return others === 0 || others + account.held + bytes <= maxBytes * SHARE_OF_A_PROJECT;
  };
  const serve = () => {
    let left = maxBytes - sum(accounts);
    for (const account of accounts) {
      const { waiting } = account;
      if (waiting === undefined || !hasShare(account, waiting.bytes)) continue;
      // Younger objects wait behind it, so that a large one does not starve.
      if (waiting.bytes > left) break;
      left -= waiting.bytes;
      account.held += waiting.bytes;
      account.waiting = undefined;
      waiting.resolve();
    }
    resolveDeadlock([...accounts]);
    for (const { projectId } of accounts)
      resolveDeadlock([...accounts].filter((account) => account.projectId === projectId));
  };
  return {
    bytesInUse: () => sum(accounts),
    open(projectId) {
      const account: Account = { projectId, held: 0, waiting: undefined };
      accounts.add(account);
      return {
        add: (bytes, signal) => addBytes(account, { bytes, signal, maxBytes, serve }),
        close: () => {
          accounts.delete(account);
          serve();
        },
      };
    },
  };
}

/** Makes the youngest yield where each waits for the bytes of another. */
function resolveDeadlock(accounts: readonly Account[]): void {
  const waiting = accounts.filter(({ held, waiting }) => held > 0 || waiting !== undefined);
  if (waiting.length < 2 || waiting.some((account) => account.waiting === undefined)) return;
  const youngest = waiting.findLast(({ held }) => held > 0);
  youngest?.waiting?.reject(new SpoolYield('an older object needs the bytes'));
}

type Addition = { bytes: number; signal: AbortSignal; maxBytes: number; serve: () => void };

async function addBytes(account: Account, { bytes, signal, maxBytes, serve }: Addition): Promise<void> {
  if (account.held + bytes > maxBytes) throw tooLarge(maxBytes);
  signal.throwIfAborted();
  let onAbort = () => {};
  try {
    await new Promise<void>((resolve, reject) => {
      account.waiting = { bytes, resolve, reject };
      onAbort = () => reject(signal.reason);
      signal.addEventListener('abort', onAbort);
      serve();
    });
  } finally {
    account.waiting = undefined;
    signal.removeEventListener('abort', onAbort);
  }
}

function tooLarge(maxBytes: number): DestinationError {
  return new DestinationError(
    `an object is larger than the ${Math.floor(maxBytes / MIB)} MiB that the service has for temporary files; use compression, or ask its operator to raise EXPORT_SPOOL_MIB`,
  );
}
