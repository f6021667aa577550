import type { Logger } from '../../core/logger.js';
import type { Pool } from '../../database/connect.js';
import { readDatabaseMs } from '../../database/session.js';
import { SigningError } from '../../keys/signing-error.js';
import type { TufKey } from '../../keys/tuf-keys.js';
import { createTrustRootsReader } from '../../public/trust-roots.js';
import { renewTuf } from '../../public/tuf/publish.js';
import { readTufStatus, type TufStatus } from '../../public/tuf/status.js';
import { currentTargets } from '../../public/tuf/targets.js';

/** Reads the status of the TUF repository. */
export type TufStatusReader = () => Promise<TufStatus>;

/** Creates a reader that compares the repository with the trust roots as they are now. */
export function tufStatusReader(pool: Pool): TufStatusReader {
  // The form of Sigstore has no address of this service.
  const trustRoots = createTrustRootsReader(pool, () => '', Date.now);
  return async () => readTufStatus(pool, await currentTargets(trustRoots), await readDatabaseMs(pool));
}

/** Creates what renews snapshot and timestamp, and warns of what an operator has to do, of each thing once. */
export function createTufRenewal(
  { pool, log }: { pool: Pool; log: Logger },
  keys: readonly TufKey[],
  readStatus: TufStatusReader,
): () => Promise<void> {
  let warned: readonly string[] = [];
  return async () => {
    const problem = await renew(pool, keys);
    const { remarks } = await readStatus();
    const warnings = problem === undefined ? remarks : [...remarks, problem];
    for (const reason of warnings.filter((one) => !warned.includes(one)))
      log.warn({ reason }, 'the TUF repository needs its operator');
    warned = warnings;
  };
}

/** @returns why it is due and cannot be done */
async function renew(pool: Pool, keys: readonly TufKey[]): Promise<string | undefined> {
  try {
    await renewTuf(pool, keys);
    return undefined;
  } catch (error) {
    if (error instanceof SigningError) return error.message;
    throw error;
  }
}
