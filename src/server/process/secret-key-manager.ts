/** Keeps a process from working with another SECRET_KEY than the one that the tables were written under. */
import { ulid } from 'ulid';
import { AuditAction, AuditActorKind } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { type KeyRing, secretKeyFingerprint } from '../keys/key-ring.js';
import type { Pool } from '../store/database/connect.js';
import { insertAuditEntry } from '../store/projects/audit.js';
import {
  countSecretsByKey,
  deleteSecretKey,
  insertSecretKeys,
  listSecretKeys,
  lockSecretKeys,
  type SecretKeyRow,
} from '../store/secret-keys.js';

/** A key of SECRET_KEY that processes over the database have worked with. */
export type SecretKeyStatus = {
  readonly id: string;
  readonly firstUsedAt: Date;
  /** Subscriptions whose secret is under it. */
  readonly webhooks: number;
};

/** What an operator can do about the keys of SECRET_KEY; none of it needs a key. */
export type SecretKeyManager = {
  /** Oldest first. */
  list(): Promise<readonly SecretKeyStatus[]>;
  /** Lets processes start without this key, or with another one under its id. Throws when it is not known. */
  forget(id: string): Promise<void>;
};

type Known = readonly Pick<SecretKeyRow, 'id' | 'fingerprint'>[];

const LOST = 'API keys and webhook secrets made under it would not work';

/**
 * Remembers the keys of this process. Throws when one has the id of another key, or when none of them was worked with
 * before; a database that knows none takes them all.
 */
export async function setUpSecretKeys(pool: Pool, keys: KeyRing): Promise<void> {
  const given = keys.map((key) => ({ id: key.id, fingerprint: secretKeyFingerprint(key) }));
  await pool.begin(async (tx) => {
    await lockSecretKeys(tx);
    const problem = findMismatch(given, await listSecretKeys(tx));
    if (problem !== undefined) throw new Error(problem);
    await insertSecretKeys(tx, given);
  });
}

/** What is wrong with the keys given, and what to do; undefined when they fit. */
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

/** What `attest secret-keys` does, over an open database. */
export function secretKeyManager(pool: Pool): SecretKeyManager {
  return {
    list: async () => {
      const secrets = await countSecretsByKey(pool);
      const known = await listSecretKeys(pool);
      return known.map(({ id, firstUsedAt }) => ({ id, firstUsedAt, webhooks: secrets.get(id) ?? 0 }));
    },
    forget: async (id) =>
      pool.begin(async (tx) => {
        if (!(await deleteSecretKey(tx, id)))
          throw new Error(`no key ${id} is known; see attest secret-keys list`);
        await insertAuditEntry(tx, {
          id: `aud_${ulid()}`,
          projectId: null,
          actorKind: AuditActorKind.ADMIN,
          actorId: 'cli',
          action: AuditAction.SECRET_KEY_FORGOTTEN,
          resourceId: id,
          requestId: null,
          detail: {},
        });
      }),
  };
}
