import type { ManifestFields } from '../../../proof/export/manifest-fields.js';
import type { Logger } from '../../core/logger.js';
import type { OutageLog } from '../../core/outage-log.js';
import type { Pool } from '../../database/connect.js';
import type { ProjectSlots } from '../../jobs/project-slots.js';
import type { Destinations } from '../destinations/destinations.js';
import type { LeasedExport } from '../store/export-leases.js';
import type { ShipmentWork } from '../store/export-work.js';
import type { RenderLines } from './export-lines.js';
import type { OpenStamps } from './export-stamps.js';
import type { SpoolBudget } from './spool-budget.js';

/**
 * An export's lease in this process. `losing` aborts its writes once another process has taken it; `superseded` names the
 * objects of which the destination had another revision.
 */
type HeldLease = { lease: number; losing: AbortController; superseded: Set<string> };

/** The dependencies of shipping exports. */
export type Exports = {
  /** A pool of its own, so that many exports do not delay sealing. */
  pool: Pool;
  log: Logger;
  destinations: Destinations;
  /**
   * Renders the lines of a batch's matching submissions as they are now, in UTF-8, and calls `note` for each. A chunk is
   * valid until the next is requested.
   */
  renderLines: RenderLines;
  /** Opens the time stamps over the signatures of an object. */
  openStamps: OpenStamps;
  /** Returns whether these lines have certainly more than so many bytes. */
  areLinesLonger: (leased: LeasedExport, work: ShipmentWork, bytes: number) => Promise<boolean>;
  /**
   * Signs a manifest with the DSSE key of the environment, a proto Environment number. Rejects if this process lacks it.
   *
   * @returns the envelope as JSON
   */
  signManifest: (environment: number, fields: ManifestFields) => Promise<Uint8Array>;
  slots: ProjectSlots;
  /** The leases of the exports in progress. */
  active: Map<string, HeldLease>;
  /** `stopping` aborts at shutdown and ends claiming; `aborting` follows and ends writes in progress. */
  stopping: AbortSignal;
  aborting: AbortSignal;
  /** Where objects are kept while they are written. */
  temporaryDirectory: string;
  spoolBudget: SpoolBudget;
  pacing: { manifestDelayMs: number };
  /** Logs objects that could not be made. */
  outageLog: OutageLog;
  observe: (shipped: { outcome: 'shipped' | 'failed'; bytes: number }) => void;
  newDeliveryId: () => string;
  /** For durations only: the database's clock is the one of all times. */
  monotonicMs: () => number;
  random: () => number;
};
