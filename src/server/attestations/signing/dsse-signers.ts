import { ENVIRONMENTS, environmentName } from '../../../protocol/environment.js';
import { unavailable } from '../../core/errors.js';
import type { Lookup } from '../../core/lookup.js';
import type { Principal } from '../../core/principal.js';
import type { Pool } from '../../database/connect.js';
import type { LogCache } from '../../log/log-cache.js';
import { type DsseKey, ensureDsseKey, findActiveKey, listDsseKeys } from '../../log/store/dsse-keys.js';
import type { DsseSigner } from '../create/new-submission.js';
import type { HeldKey } from './statement-keys.js';

/** The DSSE signers of a process. Which key signs follows from the tables and the database's time. */
type DsseSigners = {
  /** `get` throws `service.unavailable` if this process does not hold the key that signs now, or if that key expires. */
  signers: Lookup<Principal['environment'], DsseSigner>;
  /** Why statements cannot be signed, for `/readyz`. Returns undefined if they can. */
  unreadyReason(): Promise<string | undefined>;
};

type Deps = {
  logCache: Pick<LogCache, 'dsseKeys'>;
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
  const { dsseKeys } = logCache;
  const latest = new Map<number, Latest>();
  const find = async (environment: number) =>
    findActive(await dsseKeys.get(MAX_KEY_AGE_MS), held, environment, databaseMs());
  return {
    signers: {
      peek: (environment) => {
        const keys = dsseKeys.peek(MAX_KEY_AGE_MS);
        const one = latest.get(environment);
        return one !== undefined && one.keys === keys && databaseMs() < one.untilMs ? one.signer : undefined;
      },
      get: async (environment) => {
        const keys = await dsseKeys.get(MAX_KEY_AGE_MS);
        const nowMs = databaseMs();
        const { signer, problem } = findActive(keys, held, environment, nowMs);
        if (signer === undefined) throw cannotSign(new Error(problem), RETRY_SECONDS);
        const made = { keys, signer: signerOf(signer), untilMs: nextChangeMs(keys, nowMs) };
        latest.set(environment, made);
        return made.signer;
      },
    },
    unreadyReason: async () => {
      const found = await Promise.all(ENVIRONMENTS.map(find));
      const problems = await Promise.all(found.map(({ signer, problem }) => problem ?? findAway(signer)));
      return problems.find((problem) => problem !== undefined);
    },
  };
}

/** What was found last: it signs until the tables are read again, or until that time. */
type Latest = { keys: readonly DsseKey[]; signer: DsseSigner; untilMs: number };

/** When another key may begin to sign, or one stops. */
function nextChangeMs(keys: readonly DsseKey[], nowMs: number): number {
  const changes = keys.flatMap(({ activeFrom, validTo }) => [
    activeFrom?.getTime() ?? 0,
    (validTo?.getTime() ?? 0) - WITNESS_MARGIN_MS,
  ]);
  return Math.min(...changes.filter((ms) => ms > nowMs), Number.POSITIVE_INFINITY);
}

function signerOf({ keyId, sign, signMany }: DsseSigner): DsseSigner {
  const isAway = (error: unknown) => {
    throw cannotSign(error, AWAY_RETRY_SECONDS);
  };
  return {
    keyId,
    sign: (statement) => sign(statement).catch(isAway),
    signMany: (statements) => signMany(statements).catch(isAway),
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
