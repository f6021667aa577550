import { ExportService } from '../../../../gen/attestation/v1/exports_pb.js';
import type { Config } from '../../../config/config.js';
import { createRandomSource } from '../../core/random.js';
import type { ServiceEntry } from '../../http/services.js';
import { deriveKeyRing } from '../../keys/key-ring.js';
import { createProjectSlots } from '../../pipeline/project-slots.js';
import type { Cursors } from '../../rpc/cursor.js';
import { exportHandlers } from '../../rpc/exports/exports.js';
import { openIdempotency } from '../../rpc/idempotency.js';
import type { SendJob } from '../../rpc/send-after.js';
import type { SchemaRegistry } from '../../schema/registry.js';
import type { Pool } from '../../store/database/connect.js';
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
