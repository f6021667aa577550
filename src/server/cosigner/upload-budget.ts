import { unavailable } from '../core/errors.js';
import type { HoldBytes } from '../http/socket/bodies.js';
import type { NodeResponse } from '../http/socket/requests.js';

/**
 * Bounds the bytes of all request bodies in memory, from their arrival until their responses close. Beyond `maxBytes` it
 * throws `service.unavailable`.
 */
export function createUploadBudget(maxBytes: number): (res: NodeResponse) => HoldBytes {
  let all = 0;
  return (res) => {
    let held = 0;
    return (count) => {
      if (all + count > maxBytes) throw unavailable('too many request bodies are being received', 1);
      if (held === 0) {
        res.once('close', () => {
          all -= held;
        });
      }
      all += count;
      held += count;
    };
  };
}
