import { ENVIRONMENTS, environmentName } from '../../protocol/environment.js';
import { unavailable } from '../core/errors.js';
import type { Principal } from '../core/principal.js';
import type { LogCache } from '../logs/log-cache.js';
import type { DsseSigner } from '../rpc/attestations/new-submission.js';
import type { Pool } from '../store/database/connect.js';
import { type DsseKey, ensureDsseKey, findActiveKey, listDsseKeys } from '../store/dsse-keys.js';
import type { HeldKey } from './statement-keys.js';

/** The DSSE signers of a process. Which key signs follows from the tables and the database's time. */
type DsseSigners = {
  /** Throws `service.unavailable` if this process does not hold the key that signs now, or if that key expires. */
  signerOf(environment: Principal['environment']): Promise<DsseSigner>;
  /** Why statements cannot be signed, for `/readyz`. Returns undefined if they can. */
  unreadyReason(): Promise<string | undefined>;
};

type Deps = {
  logCache: Pick<LogCache, 'recentDsseKeys'>;
  /** Unix milliseconds by the database's clock. */
  databaseMs: () => number;
};

/** How long after reading the tables a process may still not know of a rotation. Rotations are announced longer before. */
const MAX_KEY_AGE_MS = 60_000;

/** A statement is trusted if a witness dates it before its key expires. Signing stops this long before. */
const WITNESS_MARGIN_MS = 5 * 60_000;
const RETRY_SECONDS = 60;
const AWAY_RETRY_SECONDS = 2;

/**
 * Publishes the DSSE keys of this process. Throws if one is known as the other environment's, or if the process lacks
 * the key that signs an environment's statements now.
 */
export async function setUpDsseKeys(
  pool: Pool,
  held: readonly HeldKey[],
  { databaseMs }: Pick<Deps, 'databaseMs'>,
): Promise<void> {
  for (const { environment, spki } of held) await ensureDsseKey(pool, environment, spki);
  const keys = await listDsseKeys(pool);
  for (const { environment, spki } of held) {
    if (!keys.some((key) => isSame(key.spki, spki) && key.environment === environment)) {
      throw new Error(
        `DSSE_KEY_FILE holds the key of another environment for ${environmentName(environment)}`,
      );
    }
  }
  for (const environment of ENVIRONMENTS) {
    const problem = findActive(keys, held, environment, databaseMs()).problem;
    if (problem !== undefined) throw new Error(problem);
  }
}

/** The signers over the keys that this process holds. */
export function createDsseSigners(held: readonly HeldKey[], { logCache, databaseMs }: Deps): DsseSigners {
  const find = async (environment: number) =>
    findActive(await logCache.recentDsseKeys(MAX_KEY_AGE_MS), held, environment, databaseMs());
  return {
    signerOf: async (environment) => {
      const { signer, problem } = await find(environment);
      if (signer === undefined) throw cannotSign(new Error(problem), RETRY_SECONDS);
      const isAway = (error: unknown) => {
        throw cannotSign(error, AWAY_RETRY_SECONDS);
      };
      return {
        keyId: signer.keyId,
        sign: (statement) => signer.sign(statement).catch(isAway),
        signMany: (statements) => signer.signMany(statements).catch(isAway),
      };
    },
    unreadyReason: async () => {
      const found = await Promise.all(ENVIRONMENTS.map(find));
      const problems = await Promise.all(found.map(({ signer, problem }) => problem ?? findAway(signer)));
      return problems.find((problem) => problem !== undefined);
    },
  };
}

type Found =
  | { signer: DsseSigner & Pick<HeldKey, 'check'>; problem?: never }
  | { signer?: never; problem: string };

function cannotSign(cause: unknown, retrySeconds: number) {
  return unavailable('this process cannot sign statements now', retrySeconds, cause);
}

async function findAway({ check }: Pick<HeldKey, 'check'>): Promise<string | undefined> {
  return check().then(
    () => undefined,
    (error: Error) => error.message,
  );
}

function findActive(
  keys: readonly DsseKey[],
  held: readonly HeldKey[],
  environment: number,
  nowMs: number,
): Found {
  const active = findActiveKey(keys, environment, nowMs);
  const name = environmentName(environment);
  if (active === undefined) return { problem: `no DSSE key signs the statements of ${name}` };
  const own = held.find((key) => isSame(key.spki, active.spki));
  if (own === undefined) {
    return {
      problem:
        `DSSE_KEY_FILE does not hold the key ${active.id}, which signs the statements of ${name} ` +
        `(attest dsse-keys list): add its file and restart, or rotate to a key that it holds`,
    };
  }
  const { validTo } = active;
  if (validTo !== null && nowMs >= validTo.getTime() - WITNESS_MARGIN_MS) {
    return {
      problem:
        `the DSSE key ${active.id} of ${name} is trusted only until ${validTo.toISOString()}: ` +
        `rotate to another one (attest dsse-keys rotate)`,
    };
  }
  return { signer: { ...own, keyId: active.id } };
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
