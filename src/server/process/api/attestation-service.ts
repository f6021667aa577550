import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { ScittService } from '../../../../gen/attestation/v1/scitt_pb.js';
import type { Config } from '../../../config/config.js';
import { createArchivedCheck } from '../../attestations/archived/find-archived.js';
import { type AttestationDeps, attestationHandlers } from '../../attestations/attestations.js';
import { createBundleReader } from '../../attestations/bundles/bundles.js';
import { createProofTiles } from '../../attestations/bundles/proof-tiles.js';
import type { SubmissionReaders } from '../../attestations/bundles/ready-bundle.js';
import type { DsseSigner } from '../../attestations/create/new-submission.js';
import { createKnownBatches } from '../../attestations/lists/listed-batches.js';
import { scittHandlers } from '../../attestations/scitt/scitt.js';
import type { Sequencers } from '../../attestations/sequence/sequencers.js';
import { receiptSigners } from '../../attestations/signing/receipt-signers.js';
import type { SignatureStamper } from '../../attestations/stamps/signature-stamper.js';
import { createStatementReader } from '../../attestations/statements/statement-store.js';
import { createSubmissionReader } from '../../attestations/submissions/submission-reader.js';
import { createChangeCounter, createSubmissionLoader } from '../../attestations/submissions/submissions.js';
import type { Lookup } from '../../core/lookup.js';
import type { Principal } from '../../core/principal.js';
import { createRandomSource } from '../../core/random.js';
import { createYieldQueue } from '../../core/serial-queue.js';
import type { Pool } from '../../database/connect.js';
import type { ServiceEntry } from '../../http/services.js';
import { openIdempotency } from '../../idempotency/idempotency.js';
import type { HeldLogKeys } from '../../keys/log-key.js';
import type { LogCache } from '../../log/log-cache.js';
import type { SchemaRegistry } from '../../schema/registry.js';

/** The open resources of AttestationService. */
export type AttestationParts = {
  pool: Pool;
  /** For statements that only read: of the standby while the primary is away. */
  readPool: Pool;
  /** The same, which plans statements once. */
  listPool: Pool;
  logCache: LogCache;
  sequencers: Sequencers;
  signers: Lookup<Principal['environment'], DsseSigner>;
  logKeys: HeldLogKeys;
  submissionClock: () => number;
  schemas: SchemaRegistry;
  stamper: SignatureStamper;
};

/** Opens the look-ups of submissions and bundles over a database, with their caches. */
export function openReaders(
  parts: Pick<AttestationParts, 'readPool' | 'logCache' | 'stamper'>,
): SubmissionReaders {
  const { readPool: pool, logCache, stamper } = parts;
  return {
    findSubmission: createSubmissionLoader(pool),
    bundles: createBundleReader({ pool, logCache, stamper }),
  };
}

/** Wires AttestationService and ScittService, which submits by the former, over an open database. */
export function attestationServices(
  config: Config,
  {
    pool,
    readPool,
    listPool,
    logCache,
    sequencers,
    signers,
    logKeys,
    submissionClock,
    schemas,
  }: AttestationParts,
  {
    findSubmission,
    bundles,
    ...shared
  }: Pick<AttestationDeps, 'cursors' | 'recordUse' | 'findSpentCeiling' | 'asApiError' | 'send'> &
    SubmissionReaders,
): ServiceEntry[] {
  const assertNotArchived = createArchivedCheck(readPool, logCache);
  const deps: AttestationDeps = {
    ...shared,
    listPool,
    knownBatches: createKnownBatches(),
    logCache,
    pool,
    tiles: createProofTiles(readPool),
    receiptSignerOf: receiptSigners(pool, logKeys),
    sequencers: sequencers.of,
    findSubmission,
    reader: createSubmissionReader({
      findSubmission,
      countChanges: createChangeCounter(readPool),
      logCache,
      bundles,
      readStatement: createStatementReader(readPool),
      assertNotArchived,
    }),
    assertNotArchived,
    schemas,
    signers,
    idempotency: openIdempotency(config, pool),
    clock: Date.now,
    submissionClock,
    random: createRandomSource(),
    ownTurn: createYieldQueue(),
  };
  const handlers = attestationHandlers(deps);
  const { createAttestation } = handlers;
  return [
    { desc: AttestationService, handlers },
    { desc: ScittService, handlers: scittHandlers({ ...deps, createAttestation }) },
  ];
}
