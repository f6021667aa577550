/** What a client may be sent without credentials. */
export type PublicOutput = {
  /** Whether a client has to wait; `peer` is undefined of clients behind a trusted proxy, which share one account. */
  isSpent: (peer: string | undefined) => boolean;
  spend: (peer: string | undefined, bytes: number) => void;
};

/** Bytes that a client may still be sent, as of a time. */
type Account = { left: number; atMs: number };
type Rate = { burst: number; perSecond: number };

const MIB = 1024 * 1024;
/** All files of reflection are 0.4 MB. */
const OF_PEER: Rate = { burst: 16 * MIB, perSecond: MIB };
/** Of all clients behind trusted proxies together. */
const OF_PROXIES: Rate = { burst: 256 * MIB, perSecond: 16 * MIB };
/** The account that was used first is dropped beyond. */
const MAX_ACCOUNTS = 4_096;

/**
 * Bounds by the client's address what the RPCs send that anyone may call: of reflection 52 bytes ask for 80 KB. Starts with
 * full accounts.
 *
 * @param monotonicMs milliseconds of a clock that never steps
 */
export function createPublicOutput(monotonicMs: () => number): PublicOutput {
  const accounts = new Map<string | undefined, Account>();
  const refill = (peer: string | undefined): Account => {
    const { burst, perSecond } = peer === undefined ? OF_PROXIES : OF_PEER;
    const nowMs = monotonicMs();
    const account = accounts.get(peer) ?? { left: burst, atMs: nowMs };
    account.left = Math.min(burst, account.left + ((nowMs - account.atMs) / 1_000) * perSecond);
    account.atMs = nowMs;
    return account;
  };
  return {
    isSpent: (peer) => accounts.has(peer) && refill(peer).left <= 0,
    spend(peer, bytes) {
      const account = refill(peer);
      account.left -= bytes;
      accounts.set(peer, account);
      if (accounts.size <= MAX_ACCOUNTS) return;
      for (const first of accounts.keys()) {
        accounts.delete(first);
        return;
      }
    },
  };
}
