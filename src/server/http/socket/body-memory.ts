import { unavailable } from '../../core/errors.js';
import type { HoldBytes } from './read-body.js';
import type { NodeResponse } from './requests.js';

/** Who holds bytes: the answer that ends the holding, and the API key that they count for. */
export type Holder = { res: NodeResponse; apiKeyId: string | undefined };

/** No API key gets more than this part of it, so that none keeps the others out. */
const SHARE_OF_A_KEY = 0.25;
const RETRY_SECONDS = 1;

/**
 * Counts the bytes of all request bodies that are held at a time, from their arrival until their requests are answered.
 * Beyond `maxBytes`, or a key's part of it, more is refused with `service.unavailable`.
 */
export function createBodyMemory(maxBytes: number): (holder: Holder) => HoldBytes {
  let all = 0;
  const byKey = new Map<string | undefined, number>();
  const change = (apiKeyId: string | undefined, by: number) => {
    const ofKey = (byKey.get(apiKeyId) ?? 0) + by;
    if (by > 0 && (all + by > maxBytes || ofKey > maxBytes * SHARE_OF_A_KEY)) {
      throw unavailable('too many request bodies are being received', RETRY_SECONDS);
    }
    all += by;
    if (ofKey === 0) byKey.delete(apiKeyId);
    else byKey.set(apiKeyId, ofKey);
  };
  return ({ res, apiKeyId }) => {
    let held = 0;
    return (count) => {
      change(apiKeyId, count);
      if (held === 0) res.once('close', () => change(apiKeyId, -held));
      held += count;
    };
  };
}
