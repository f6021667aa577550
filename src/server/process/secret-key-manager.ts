/** Detects a SECRET_KEY that differs from the one that the tables were written with. */
import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { insertOperatorEntry } from '../admin/store/audit.js';
import type { Pool } from '../database/connect.js';
import { type KeyRing, secretKeyFingerprint } from '../keys/key-ring.js';
import {
  countSecretsByKey,
  deleteSecretKey,
  insertSecretKeys,
  listSecretKeys,
  lockSecretKeys,
  type SecretCounts,
  type SecretKeyRow,
} from './secret-keys.js';

/** A key of SECRET_KEY that processes have used with this database. */
type SecretKeyStatus = Readonly<SecretCounts> & { readonly id: string; readonly firstUsedAt: Date };

/** Operations on the recorded keys of SECRET_KEY; none needs a key. */
export type SecretKeyManager = {
  /** Oldest first. */
  list(): Promise<readonly SecretKeyStatus[]>;
  /** Forgets a key: processes may start without it, or with another one under its id. Throws if it is unknown. */
  forget(id: string): Promise<void>;
};

type Known = readonly Pick<SecretKeyRow, 'id' | 'fingerprint'>[];

const NONE: SecretCounts = { webhooks: 0, exports: 0 };
const LOST = 'API keys, webhook secrets and export credentials made under it would not work';

/**
 * Records the keys of this process. Throws if one has the id of another key, or if none was used with this database
 * before. A database without recorded keys accepts all.
 */
export async function setUpSecretKeys(pool: Pool, keys: KeyRing): Promise<void> {
  const given = fingerprintsOf(keys);
  await pool.begin(async (tx) => {
    await lockSecretKeys(tx);
    const problem = findMismatch(given, await listSecretKeys(tx));
    if (problem !== undefined) throw new Error(problem);
    await insertSecretKeys(tx, given);
  });
}

/** Why the keys of this process are not those of the database, and what to do; undefined if they are. Changes nothing. */
export async function findSecretKeyProblem(pool: Pool, keys: KeyRing): Promise<string | undefined> {
  return findMismatch(fingerprintsOf(keys), await listSecretKeys(pool));
}

function fingerprintsOf(keys: KeyRing) {
  return keys.map((key) => ({ id: key.id, fingerprint: secretKeyFingerprint(key) }));
}

/** Why the keys do not match and what to do; undefined if they match. */
function findMismatch(given: Known, known: Known): string | undefined {
  const findKnown = (id: string) => known.find((key) => key.id === id);
  const changed = given.find(({ id, fingerprint }) => {
    const before = findKnown(id);
    return before !== undefined && Buffer.compare(before.fingerprint, fingerprint) !== 0;
  });
  if (changed !== undefined) {
    return (
      `SECRET_KEY has another key under the id ${changed.id} than the one this database was used with: ${LOST}. ` +
      `Give that key back; a new one gets a new id and stands before it. ` +
      `If it is lost for good, run attest secret-keys forget ${changed.id} first`
    );
  }
  if (known.length === 0 || given.some(({ id }) => findKnown(id) !== undefined)) return undefined;
  const ids = known.map(({ id }) => id).join(', ');
  return (
    `SECRET_KEY holds none of the keys that this database was used with (${ids}): ${LOST}. ` +
    `Put the new key before the old one, as SECRET_KEY=<new>,<old>. ` +
    `If the old one is lost for good, run attest secret-keys forget for each first`
  );
}

/** Creates the manager behind `attest secret-keys`. */
export function secretKeyManager(pool: Pool): SecretKeyManager {
  return {
    list: async () => {
      const secrets = await countSecretsByKey(pool);
      const known = await listSecretKeys(pool);
      return known.map(({ id, firstUsedAt }) => ({ id, firstUsedAt, ...(secrets.get(id) ?? NONE) }));
    },
    forget: async (id) =>
      pool.begin(async (tx) => {
        if (!(await deleteSecretKey(tx, id)))
          throw new Error(`no key ${id} is known; see attest secret-keys list`);
        await insertOperatorEntry(tx, AuditAction.SECRET_KEY_FORGOTTEN, id, {});
      }),
  };
}
