import { type NodeResponse, whenClosed } from './requests.js';

/** Bytes that may be held under a name. */
export type Share = { name: string; max: number };

/** Bytes in memory by the names that they are held under. */
export type ByteBudget = {
  held: (name: string) => number;
  /** Returns a function that holds bytes under these names until the response closes. */
  open: (res: NodeResponse, shares: readonly Pick<Share, 'name'>[]) => (bytes: number) => void;
};

/** Creates a budget that holds nothing. It bounds nothing by itself: who holds compares with the shares before. */
export function createByteBudget(): ByteBudget {
  const held = new Map<string, number>();
  const change = (name: string, by: number) => {
    const bytes = (held.get(name) ?? 0) + by;
    if (bytes === 0) held.delete(name);
    else held.set(name, bytes);
  };
  return {
    held: (name) => held.get(name) ?? 0,
    open: (res, shares) => {
      let ofResponse = 0;
      return (bytes) => {
        if (ofResponse === 0) {
          whenClosed(res, () => {
            for (const { name } of shares) change(name, -ofResponse);
          });
        }
        ofResponse += bytes;
        for (const { name } of shares) change(name, bytes);
      };
    },
  };
}
