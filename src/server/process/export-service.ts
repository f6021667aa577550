import { tmpdir } from 'node:os';
import { ExportService } from '../../../gen/attestation/v1/exports_pb.js';
import type { Config } from '../../config/config.js';
import { createRandomSource } from '../core/random.js';
import { destinationMembers } from '../export/destination.js';
import { openDestination } from '../export/open-destination.js';
import type { ServiceEntry } from '../http/services.js';
import { deriveKeyRing } from '../keys/key-ring.js';
import { createProjectShares } from '../pipeline/exports/project-shares.js';
import type { Cursors } from '../rpc/cursor.js';
import { exportHandlers } from '../rpc/exports/exports.js';
import { openIdempotency } from '../rpc/idempotency.js';
import type { Pool } from '../store/database/connect.js';

/** Probes of one process in progress, over all projects. */
const MAX_PROBES = 32;

/** ExportService over an open database. */
export function exportService(config: Config, pool: Pool, cursors: Cursors): ServiceEntry {
  const handlers = exportHandlers({
    pool,
    idempotency: openIdempotency(config, pool),
    cursors,
    encryptionKeys: deriveKeyRing(config.secrets.secretKeys, 'encryption'),
    probe: {
      shares: createProjectShares(MAX_PROBES),
      open: (target) =>
        openDestination({
          ...target,
          destination: destinationMembers(target.destination),
          allowInsecure: config.allowInsecureDestinations,
          ambientCredentials: config.ambientCredentials,
          temporaryDirectory: tmpdir(),
        }),
    },
    clock: Date.now,
    random: createRandomSource(),
  });
  return { desc: ExportService, handlers };
}
