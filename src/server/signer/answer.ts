/** Answers the requests of the signing protocol. */
import { fromBase64, toBase64 } from '../../proof/bytes/encoding.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import type { Logger } from '../core/logger.js';
import type { OutageLogs } from '../core/outage-log.js';
import { SigningError } from '../keys/signing-error.js';
import type { Texts } from '../keys/socket/socket-frames.js';
import type { LogHistory } from './log-history.js';
import type { OpenKey } from './open-keys.js';
import { assertMaySign } from './policy.js';

/** What became of a request to sign. `rejected`: by the policy; `failed`: by the backend. */
export type Outcome = 'signed' | 'rejected' | 'failed';

type AnswerDeps = {
  keys: readonly OpenKey[];
  history: LogHistory;
  log: Pick<Logger, 'error'>;
  outages: OutageLogs;
  /** Called once for each request to sign. */
  observe: (key: string, outcome: Outcome, ms: number) => void;
};

/** A request that the policy rejects, or that makes no sense. */
class RejectedRequest extends SigningError {}

/** Returns a function that answers a request. It never rejects. */
export function createAnswers(deps: AnswerDeps): (request: Texts) => Promise<Texts> {
  const keys = new Map(deps.keys.map((key) => [key.config.name, key]));
  const sign = coalesced();
  return async ({ op, key: name = '', data = '' }): Promise<Texts> => {
    const key = keys.get(name);
    if (key === undefined) return { error: `there is no key ${name.slice(0, 128)}` };
    if (op === 'public_key') return { public_key: toBase64(key.spki) };
    if (op !== 'sign') return { error: 'op is not public_key or sign' };
    const startedMs = performance.now();
    const end = (outcome: Outcome) => deps.observe(name, outcome, performance.now() - startedMs);
    const outage = deps.outages.for(name);
    try {
      const signature = await sign(`${name} ${data}`, async () =>
        key.sign(await checked(deps.history, key, data)),
      );
      outage.recovered({ key: name }, 'the key signs again');
      end('signed');
      return { signature: toBase64(signature) };
    } catch (error) {
      const { message } = error as Error;
      end(error instanceof RejectedRequest ? 'rejected' : 'failed');
      if (error instanceof RejectedRequest) deps.log.error({ key: name }, `REJECTED: ${message}`);
      else outage.failed({ key: name, reason: message }, 'the key cannot sign');
      return { error: error instanceof SigningError ? message : 'it failed; see the log of the signer' };
    }
  };
}

/** The bytes to be signed, if the key may sign them; a checkpoint is in the history then. */
async function checked(history: LogHistory, { config }: OpenKey, data: string): Promise<Uint8Array> {
  try {
    const bytes = fromBase64(data);
    const checkpoint = assertMaySign(config, bytes);
    if (checkpoint !== undefined) await history.advance(checkpoint);
    return bytes;
  } catch (error) {
    if (error instanceof FormatError) throw new RejectedRequest('data is not base64');
    if (error instanceof SigningError) throw new RejectedRequest(error.message);
    throw error;
  }
}

/** Runs equal work that is wanted at once only once: workers ask for signatures of the same checkpoint. */
function coalesced(): (name: string, work: () => Promise<Uint8Array>) => Promise<Uint8Array> {
  const running = new Map<string, Promise<Uint8Array>>();
  return (name, work) => {
    const known = running.get(name);
    if (known !== undefined) return known;
    const result = work().finally(() => running.delete(name));
    running.set(name, result);
    return result;
  };
}
