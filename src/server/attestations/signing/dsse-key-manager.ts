/** Rotation of the keys that sign statements, through the rows that every process reads. */
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { toHex } from '../../../proof/bytes/encoding.js';
import { sha256 } from '../../../proof/bytes/primitives.js';
import { type EnvironmentName, environmentName, environmentNumber } from '../../../protocol/environment.js';
import { insertOperatorEntry } from '../../admin/store/audit.js';
import type { Pool, Sql } from '../../database/connect.js';
import { readDatabaseMs } from '../../database/session.js';
import {
  type DsseKey,
  endDsseKey,
  findActiveKey,
  listDsseKeys,
  lockDsseKeys,
  setActiveFrom,
} from '../../log/store/dsse-keys.js';
import { listUndated } from './retirement.js';

/** `published`: not in use yet; `scheduled`: signs later; `replaced`: trusted until all that it signed is witnessed. */
type DsseKeyState = 'published' | 'scheduled' | 'active' | 'replaced' | 'ending' | 'ended';

/** A DSSE key as operators see it. */
export type DsseKeyStatus = {
  readonly id: number;
  readonly environment: EnvironmentName;
  /** Hex SHA-256 of its SPKI. */
  readonly fingerprint: string;
  readonly state: DsseKeyState;
  readonly publishedAt: Date;
  readonly activeFrom: Date | undefined;
  readonly validTo: Date | undefined;
  /** The condition under which trust in a replaced key ends. */
  readonly waitsFor: readonly string[];
};

/** Administration of DSSE keys. */
export type DsseKeyManager = {
  /** Oldest first. */
  list(): Promise<readonly DsseKeyStatus[]>;
  /**
   * Makes a published key sign from `afterMs` milliseconds on, by the database's clock: the key `id`, or the only one
   * that is published and unused. Throws if there is no such key, or if another rotation is scheduled.
   */
  rotate(
    environment: EnvironmentName,
    options: { id?: number | undefined; afterMs: number },
  ): Promise<DsseKeyStatus>;
  /** Takes a scheduled rotation back. Throws if none is scheduled. */
  cancel(environment: EnvironmentName): Promise<DsseKeyStatus>;
  /** Ends the trust in a key that does not sign, at a time or earlier. Throws if it signs or is scheduled to. */
  revoke(id: number, at: Date | undefined): Promise<DsseKeyStatus>;
};

/** Implements `attest dsse-keys` over an open database. */
export function dsseKeyManager(pool: Pool): DsseKeyManager {
  const list = () => readStatuses(pool);
  const change = async (make: (tx: Sql, keys: Known) => Promise<number>) => {
    const id = await pool.begin(async (tx) => {
      await lockDsseKeys(tx);
      return make(tx, { keys: await listDsseKeys(tx), nowMs: await readDatabaseMs(tx) });
    });
    return getStatus(await list(), id);
  };
  return {
    list,
    rotate: (environment, options) => change((tx, known) => rotate(tx, known, environment, options)),
    cancel: (environment) => change((tx, known) => cancel(tx, known, environment)),
    revoke: (id, at) => change((tx, known) => revoke(tx, known, id, at)),
  };
}

type Known = { keys: readonly DsseKey[]; nowMs: number };

async function rotate(
  tx: Sql,
  known: Known,
  environment: EnvironmentName,
  { id, afterMs }: { id?: number | undefined; afterMs: number },
): Promise<number> {
  const scheduled = findScheduled(known, environment);
  if (scheduled !== undefined) {
    throw new Error(
      `the key ${scheduled.id} is to sign from ${scheduled.activeFrom?.toISOString()}: ` +
        `attest dsse-keys cancel --environment ${environment} takes that back`,
    );
  }
  const next = pickUnused(known, environment, id);
  const activeFrom = await setActiveFrom(tx, next.id, afterMs);
  await record(tx, AuditAction.DSSE_KEY_ROTATED, next, { active_from: activeFrom?.toISOString() ?? '' });
  return next.id;
}

function pickUnused({ keys }: Known, environment: EnvironmentName, id: number | undefined): DsseKey {
  const unused = keys.filter(
    (key) => isOf(key, environment) && key.activeFrom === null && key.validTo === null,
  );
  const [only, ...more] = id === undefined ? unused : unused.filter((key) => key.id === id);
  if (only === undefined) {
    throw new Error(
      id === undefined
        ? `no new key of ${environment} is published: add its file to DSSE_KEY_FILE and restart every process first`
        : `the key ${id} is not a published and unused key of ${environment}; see attest dsse-keys list`,
    );
  }
  if (more.length > 0) {
    const ids = unused.map((key) => key.id).join(', ');
    throw new Error(`several new keys of ${environment} are published (${ids}): name one`);
  }
  return only;
}

async function cancel(tx: Sql, known: Known, environment: EnvironmentName): Promise<number> {
  const scheduled = findScheduled(known, environment);
  if (scheduled === undefined) throw new Error(`no rotation of ${environment} is scheduled`);
  await setActiveFrom(tx, scheduled.id, undefined);
  await record(tx, AuditAction.DSSE_KEY_ROTATION_CANCELLED, scheduled, {});
  return scheduled.id;
}

async function revoke(tx: Sql, known: Known, id: number, at: Date | undefined): Promise<number> {
  const key = known.keys.find((one) => one.id === id);
  if (key === undefined) throw new Error(`there is no key ${id}; see attest dsse-keys list`);
  const state = stateOf(known, key);
  if (state === 'active' || state === 'scheduled') {
    const environment = environmentName(key.environment);
    throw new Error(
      state === 'active'
        ? `the key ${id} signs: rotate to another one first (attest dsse-keys rotate --environment ${environment} --after 2m)`
        : `the key ${id} is to sign: attest dsse-keys cancel --environment ${environment} first`,
    );
  }
  const validTo = await endDsseKey(tx, id, at ?? new Date(known.nowMs));
  await record(tx, AuditAction.DSSE_KEY_REVOKED, key, { valid_to: validTo?.toISOString() ?? '' });
  return id;
}

async function readStatuses(pool: Pool): Promise<DsseKeyStatus[]> {
  const known = { keys: await listDsseKeys(pool), nowMs: await readDatabaseMs(pool) };
  return Promise.all(known.keys.map((key) => readStatus(pool, known, key)));
}

async function readStatus(pool: Pool, known: Known, key: DsseKey): Promise<DsseKeyStatus> {
  const state = stateOf(known, key);
  const successor = state === 'replaced' ? findSuccessor(known, key) : undefined;
  const undated = successor?.activeFrom ? await listUndated(pool, key.environment, successor.activeFrom) : [];
  return {
    id: key.id,
    environment: environmentName(key.environment),
    fingerprint: toHex(sha256(key.spki)),
    state,
    publishedAt: key.validFrom,
    activeFrom: key.activeFrom ?? undefined,
    validTo: key.validTo ?? undefined,
    waitsFor: undated.map(
      ({ origin, logIndex, since }) => `${origin} from leaf ${logIndex} (${since.toISOString()})`,
    ),
  };
}

function stateOf(known: Known, key: DsseKey): DsseKeyState {
  if (key.validTo !== null) return key.validTo.getTime() <= known.nowMs ? 'ended' : 'ending';
  if (key.activeFrom === null) return 'published';
  if (key.activeFrom.getTime() > known.nowMs) return 'scheduled';
  return findActiveKey(known.keys, key.environment, known.nowMs)?.id === key.id ? 'active' : 'replaced';
}

/** The key that took the place of one that signed. */
function findSuccessor(
  { keys, nowMs }: Known,
  { environment, id, activeFrom }: DsseKey,
): DsseKey | undefined {
  return keys
    .filter((key) => key.environment === environment && key.id !== id && key.activeFrom !== null)
    .filter((key) => key.activeFrom! >= activeFrom! && key.activeFrom!.getTime() <= nowMs)
    .sort((a, b) => a.activeFrom!.getTime() - b.activeFrom!.getTime())[0];
}

function findScheduled({ keys, nowMs }: Known, environment: EnvironmentName): DsseKey | undefined {
  return keys.find((key) => isOf(key, environment) && (key.activeFrom?.getTime() ?? 0) > nowMs);
}

function isOf(key: DsseKey, environment: EnvironmentName): boolean {
  return key.environment === environmentNumber(environment);
}

function getStatus(statuses: readonly DsseKeyStatus[], id: number): DsseKeyStatus {
  const status = statuses.find((one) => one.id === id);
  if (status === undefined) throw new Error(`the key ${id} is missing`);
  return status;
}

async function record(
  tx: Sql,
  action: AuditAction,
  { id, environment, spki }: DsseKey,
  detail: Record<string, string>,
): Promise<void> {
  await insertOperatorEntry(tx, action, String(id), {
    environment: environmentName(environment),
    fingerprint: toHex(sha256(spki)),
    ...detail,
  });
}
