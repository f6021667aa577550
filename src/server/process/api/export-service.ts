import { ExportService } from '../../../../gen/attestation/v1/exports_pb.js';
import type { Config } from '../../../config/config.js';
import { createRandomSource } from '../../core/random.js';
import type { Pool } from '../../database/connect.js';
import { exportHandlers } from '../../exports/rpc/exports.js';
import type { ServiceEntry } from '../../http/services.js';
import { openIdempotency } from '../../idempotency/idempotency.js';
import { createProjectSlots } from '../../jobs/project-slots.js';
import type { SendJob } from '../../jobs/send-after.js';
import { deriveKeyRing } from '../../keys/key-ring.js';
import type { Cursors } from '../../rpc/cursor.js';
import type { SchemaRegistry } from '../../schema/registry.js';
import { destinationOpener } from '../destination-opener.js';

/** Probes of one process in progress, over all projects. */
const MAX_PROBES = 32;

type ExportParts = { pool: Pool; cursors: Cursors; schemas: SchemaRegistry; send: SendJob };

/** ExportService over an open database. */
export function exportService(config: Config, { pool, cursors, schemas, send }: ExportParts): ServiceEntry {
  const handlers = exportHandlers({
    pool,
    send,
    idempotency: openIdempotency(config, pool),
    cursors,
    schemas,
    encryptionKeys: deriveKeyRing(config.secrets.secretKeys, 'encryption'),
    probe: { slots: createProjectSlots(MAX_PROBES), open: destinationOpener(config) },
    clock: Date.now,
    random: createRandomSource(),
  });
  return { desc: ExportService, handlers };
}
