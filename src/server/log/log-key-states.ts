import type { Logger } from '../core/logger.js';
import type { Pool } from '../database/connect.js';
import { findLogKey, findMlDsaKey, type HeldLogKeys } from '../keys/log-key.js';
import { SigningError } from '../keys/signing-error.js';
import { type Log, listLogs } from './store/logs.js';

/** Whether this process can sign the checkpoints of a log with one of its keys; `problem` says why not. */
export type LogKeyState = {
  readonly log: Log;
  readonly algorithm: 'ed25519' | 'ml-dsa-44';
  readonly problem: string | undefined;
};

/** Checks the keys of each log that checkpoints are still to be signed of. */
export async function readLogKeyStates(pool: Pool, held: HeldLogKeys): Promise<LogKeyState[]> {
  const logs = (await listLogs(pool)).filter(
    ({ endedAt, frozenAt }) => endedAt === null && frozenAt === null,
  );
  const states = logs.map(async (log): Promise<LogKeyState[]> => {
    const ed25519: LogKeyState = { log, algorithm: 'ed25519', problem: await findKeyProblem(log, held) };
    if (log.mlDsaPublicKey === null) return [ed25519];
    return [ed25519, { log, algorithm: 'ml-dsa-44', problem: findMlDsaProblem(log, held) }];
  });
  return (await Promise.all(states)).flat();
}

/** Warns of ML-DSA-44 keys that this process lacks: it seals without them. */
export async function warnOfMissingMlDsaKeys(
  { pool, log }: { pool: Pool; log: Logger },
  held: HeldLogKeys,
): Promise<void> {
  for (const state of await readLogKeyStates(pool, held)) {
    const { algorithm, problem } = state;
    if (algorithm !== 'ml-dsa-44' || problem === undefined) continue;
    const { origin } = state.log;
    log.warn({ origin }, 'checkpoints lack the ML-DSA-44 signature: set LOG_ML_DSA_KEY_FILE and restart');
  }
}

async function findKeyProblem(log: Log, held: HeldLogKeys): Promise<string | undefined> {
  try {
    await findLogKey(held, log).check();
    return undefined;
  } catch (error) {
    if (error instanceof SigningError) return `nothing is sealed: ${error.message}`;
    throw error;
  }
}

function findMlDsaProblem(log: Log, held: HeldLogKeys): string | undefined {
  if (findMlDsaKey(held, log) !== undefined) return undefined;
  return `checkpoints lack the ML-DSA-44 signature: LOG_ML_DSA_KEY_FILE does not hold the key of the log ${log.origin}`;
}
