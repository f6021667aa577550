import { tmpdir } from 'node:os';
import type { Config } from '../../../config/config.js';
import { createSignatureStamper } from '../../attestations/stamps/signature-stamper.js';
import type { StampWitness } from '../../attestations/stamps/stamp-witness.js';
import type { Logger } from '../../core/logger.js';
import { createOutageLog } from '../../core/outage-log.js';
import { createRandomSource, idMaker } from '../../core/random.js';
import { connectPool, type Pool } from '../../database/connect.js';
import { createDestinations } from '../../exports/destinations/destinations.js';
import { readStoredDestination } from '../../exports/destinations/stored-destination.js';
import { createExportLines, createLineMeasure } from '../../exports/ship/export-lines.js';
import type { Exports } from '../../exports/ship/export-stage.js';
import { createExportStamps } from '../../exports/ship/export-stamps.js';
import { createSpoolBudget } from '../../exports/ship/spool-budget.js';
import { renewExportLeases } from '../../exports/store/export-leases.js';
import { keepRenewing, LEASE_MS } from '../../jobs/lease.js';
import { createProjectSlots } from '../../jobs/project-slots.js';
import { deriveKeyRing } from '../../keys/key-ring.js';
import type { Secrets } from '../../keys/secrets.js';
import { openLogCache } from '../../log/log-cache.js';
import { type DestinationSettings, destinationOpener } from '../destination-opener.js';
import type { Standby } from '../standby.js';
import { createManifestSigner } from './manifest-signing.js';

/** The options of shipping exports. */
export type ExportsOptions = Pick<Standby, 'guard' | 'localPool'> & {
  config: Pick<Config, 'databaseUrl' | 'exportSpoolBytes'> &
    DestinationSettings & { secrets: Pick<Secrets, 'secretKeys' | 'dsse'> };
  log: Logger;
  /** The witnesses that stamp signatures. */
  stampWitnesses: readonly StampWitness[];
  /** Called with each object that was written, and each attempt that failed. */
  observeShipments: Exports['observe'];
};

/** Shipping, ready for jobs. */
type OpenExports = {
  exports: Exports;
  /** Stops claiming and aborts writes in progress after a grace period. */
  stop(): void;
  /** Closes the connections. Call it once no job is running. */
  close(): Promise<void>;
};

/** The most exports of one worker in progress, over all projects. */
const MAX_ACTIVE = 128;
const CONNECTIONS = 6;
const STATEMENT_TIMEOUT_MS = 10_000;
const GRACE_MS = 2_000;
const MANIFEST_DELAY_MS = 60_000;

/** Opens the connections for reading and recording shipments. */
export async function openExports(options: ExportsOptions): Promise<OpenExports> {
  const { config, guard, localPool, log, stampWitnesses: witnesses, observeShipments } = options;
  const { databaseUrl: url, secrets } = config;
  const pool = connectPool({
    url,
    name: 'exports',
    max: CONNECTIONS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    guard,
  });
  const stopping = new AbortController();
  const aborting = new AbortController();
  const source = createRandomSource();
  const keys = deriveKeyRing(secrets.secretKeys, 'encryption');
  const open = destinationOpener(config);
  const destinations = createDestinations(async (row) =>
    open({ exportId: row.id, projectId: row.projectId, destination: readStoredDestination(keys, row) }),
  );
  const logCache = await openLogCache(pool);
  const stamper = createSignatureStamper({ pool, log, witnesses });
  const openStamps = createExportStamps({ pool, stamper, clock: () => performance.now() });
  const manifests = createManifestSigner(pool, logCache, secrets.dsse);
  const exports: Exports = {
    pool,
    log,
    destinations,
    renderLines: createExportLines(pool, logCache, openStamps),
    openStamps,
    areLinesLonger: createLineMeasure(pool, logCache),
    signManifest: manifests.sign,
    slots: createProjectSlots(MAX_ACTIVE),
    active: new Map(),
    stopping: stopping.signal,
    aborting: aborting.signal,
    temporaryDirectory: tmpdir(),
    spoolBudget: createSpoolBudget(config.exportSpoolBytes),
    pacing: { manifestDelayMs: MANIFEST_DELAY_MS },
    outageLog: createOutageLog(log, () => performance.now()),
    observe: observeShipments,
    newDeliveryId: idMaker(source, 'dlv_'),
    monotonicMs: () => performance.now(),
    random: Math.random,
  };
  const stopRenewing = keepRenewing(() => renew(localPool, exports));
  return {
    exports,
    stop: () => {
      stopping.abort();
      setTimeout(() => aborting.abort(), GRACE_MS).unref();
    },
    close: async () => {
      aborting.abort();
      stamper.close();
      await stopRenewing();
      await destinations.close();
      await manifests.close();
      await pool.end({ timeout: 5 });
    },
  };
}

/** Renews the leases in progress, and aborts the writes of exports that were stopped or taken over. */
async function renew(localPool: Pool, { active }: Exports): Promise<void> {
  if (active.size === 0) return;
  const held = new Map(active);
  for (const id of await renewExportLeases(localPool, held, LEASE_MS)) {
    held.get(id)?.losing.abort(new Error('the export was stopped, or another worker has taken it'));
  }
}
