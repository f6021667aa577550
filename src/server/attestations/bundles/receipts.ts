import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { fromBase64 } from '../../../proof/bytes/encoding.js';
import {
  encodeReceipt,
  encodeReceiptHeader,
  type Inclusion,
  receiptToSign,
} from '../../../proof/cose/receipt.js';
import { parseCheckpoint } from '../../../proof/log/checkpoint.js';
import { ApiError, unavailable } from '../../core/errors.js';
import type { Pool } from '../../database/connect.js';
import { KeyNotHeldError, SigningError } from '../../keys/signing-error.js';
import type { LogCache } from '../../log/log-cache.js';
import { findNewestPublishedBatch } from '../../log/store/batches.js';
import type { Log } from '../../log/store/logs.js';
import type { SerializedBundle } from './bundles.js';
import type { ProofTiles } from './proof-tiles.js';

/** Signs receipts of a log: the id of its key, SHA-256 of the SPKI, and ES256 with r and s of 32 bytes each. */
export type ReceiptSigner = { keyId: Uint8Array; sign: (data: Uint8Array) => Promise<Uint8Array> };

/** Dependencies of {@link createReceipt}. */
export type ReceiptDeps = {
  pool: Pool;
  logCache: Pick<LogCache, 'allLogs'>;
  tiles: ProofTiles;
  /** Rejects with a SigningError if there is no key of the log's receipts here. The key is published before it signs. */
  receiptSignerOf: (log: Log) => Promise<ReceiptSigner>;
};

const RETRY_SECONDS = 10;

type SignedTree = Inclusion & { root: Uint8Array };

/**
 * Makes a COSE receipt of a submission, over the checkpoint of its batch. A tree of one leaf has no path, which the format
 * requires: there it is over the newest tree. Throws `bundle.not_ready` while the log has one leaf, and for good if the log
 * has ended and no process holds its key; `service.unavailable` if the key cannot sign now.
 */
export async function createReceipt(
  deps: ReceiptDeps,
  id: string,
  bundle: SerializedBundle,
): Promise<Uint8Array> {
  const [checkpoint] = bundle.message().checkpoints;
  const { origin, size, rootHash } = parseCheckpoint(checkpoint?.note ?? '');
  const log = deps.logCache.allLogs().find((one) => one.origin === origin);
  if (log === undefined) throw new Error(`there is no log ${origin}`);
  const index = bundle.logIndex;
  const tree: SignedTree =
    size > 1
      ? { size, index, path: checkpoint?.inclusionProof ?? [], root: rootHash }
      : await newestTree(deps, log, index);
  const { protectedHeader, signature } = await signReceipt(deps, log, id, tree);
  return encodeReceipt({ ...tree, protectedHeader, signature });
}

async function signReceipt({ receiptSignerOf }: ReceiptDeps, log: Log, subject: string, tree: SignedTree) {
  try {
    const signer = await receiptSignerOf(log);
    const { keyId } = signer;
    const protectedHeader = encodeReceiptHeader({ issuer: log.origin, subject, size: tree.size, keyId });
    return { protectedHeader, signature: await signer.sign(receiptToSign(protectedHeader, tree.root)) };
  } catch (error) {
    if (!(error instanceof SigningError)) throw error;
    if (log.endedAt !== null && error instanceof KeyNotHeldError) throw noMoreReceipts(log);
    throw unavailable('this process cannot sign receipts of this log now', RETRY_SECONDS, error);
  }
}

/** Only logs that have ended can be without a key for good: a process does not start without the key of another. */
function noMoreReceipts({ origin }: Log): ApiError {
  return new ApiError(
    ErrorCode.BUNDLE_NOT_READY,
    `the log ${origin} has ended and its key has been removed, so no receipts are made of it any more; take bundle.json or bundle.tlog-proof, which prove the same inclusion`,
  );
}

async function newestTree({ pool, tiles }: ReceiptDeps, log: Log, index: number): Promise<SignedTree> {
  const newest = await findNewestPublishedBatch(pool, log.id);
  if (newest === undefined || newest.treeSize < 2) {
    const message = 'a COSE receipt needs a second submission in the log';
    throw new ApiError(ErrorCode.BUNDLE_NOT_READY, message, {}, { 'retry-after': String(RETRY_SECONDS) });
  }
  const { treeSize: size, rootHash: root } = newest;
  const [proof = ''] = await tiles.prove(log.id, index, [size]);
  const path = (JSON.parse(`[${proof}]`) as string[]).map((hash) => fromBase64(hash));
  return { size, index, path, root };
}
