import { AttestationService, type BatchItem } from '../../../../gen/attestation/v1/attestations_pb.js';
import { type Call, getPrincipal } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import { type KeyedRequest, requestHashes } from '../../idempotency/idempotency.js';
import { readMetadata } from '../metadata.js';
import { type CreateDeps, LARGE_METADATA } from './create-attestation.js';
import { creationTexts } from './creation-text.js';
import { type CheckedSubmission, checkSubmission, type Submitter, submitterOf } from './new-submission.js';

type CheckDeps = Pick<CreateDeps, 'schemas' | 'idempotency' | 'ownTurn'>;

/** An item that passes its checks, and its place. */
export type CheckedItem = {
  index: number;
  submission: CheckedSubmission;
  keyed: KeyedRequest | undefined;
};

/** The items of a batch: those that pass their checks, the errors of the others by their places, and all their sizes. */
type CheckedItems = { passed: CheckedItem[]; errors: Map<number, ApiError>; bytes: number[] };

/** Longest stretch of work without a turn of the event loop for others, in milliseconds. */
const STRETCH_MS = 2;

/**
 * Reads and checks all items of a batch, with pauses. Of an item that passes only what is stored is kept, its metadata as
 * canonical text. Throws the error of the whole request if it is no list of items.
 */
export async function checkItems(deps: CheckDeps, call: Call): Promise<CheckedItems> {
  const { nextItem } = call;
  const submitter = submitterOf(getPrincipal(call));
  if (nextItem === undefined) throw new Error('a batch has no items to read');
  const items: CheckedItems = { passed: [], errors: new Map(), bytes: [] };
  let startedMs = performance.now();
  for (let index = 0; ; index++) {
    const item = nextItem();
    if (item === undefined) return items;
    items.bytes.push(item.bytes);
    if (item.bytes > LARGE_METADATA || performance.now() - startedMs > STRETCH_MS) {
      await deps.ownTurn();
      startedMs = performance.now();
    }
    const found = item.error ?? checkItem(deps, submitter, item.message as BatchItem, index);
    if (found instanceof ApiError) items.errors.set(index, found);
    else items.passed.push(found);
  }
}

/** Checks an item as the creation that it is. Returns the error that it would have got alone. */
function checkItem(
  deps: CheckDeps,
  submitter: Submitter,
  item: BatchItem,
  index: number,
): CheckedItem | ApiError {
  try {
    const submission = checkSubmission(deps, item, readMetadata(item.metadata ?? {}), submitter);
    return { index, submission, keyed: keyOf(deps, item, submission) };
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** The key of an item, and the hashes of the creation that it is, so that either replays the other. */
function keyOf(
  { idempotency }: CheckDeps,
  { idempotencyKey: key, validation }: BatchItem,
  submission: CheckedSubmission,
): KeyedRequest | undefined {
  if (key === undefined) return undefined;
  const { createAttestation } = AttestationService.method;
  return {
    key,
    requestHashes: requestHashes(idempotency, createAttestation, creationTexts(submission, validation)),
  };
}

/** An item under the key of an earlier one of the batch. */
export type Repeat = { item: CheckedItem; first: CheckedItem };

/** Only the first item of each key is written; the others follow from its result. */
export function splitRepeats(items: readonly CheckedItem[]): { firsts: CheckedItem[]; repeats: Repeat[] } {
  const byKey = new Map<string, CheckedItem>();
  const firsts: CheckedItem[] = [];
  const repeats: Repeat[] = [];
  for (const item of items) {
    const first = item.keyed && byKey.get(item.keyed.key);
    if (first !== undefined) repeats.push({ item, first });
    else firsts.push(item);
    if (item.keyed !== undefined && first === undefined) byKey.set(item.keyed.key, item);
  }
  return { firsts, repeats };
}

/** Whether an item makes the same request as the first one of its key. */
export function isSameRequest({ item, first }: Repeat): boolean {
  const [hash, other] = [item, first].map(({ keyed }) => keyed?.requestHashes[0]);
  return hash !== undefined && other !== undefined && Buffer.compare(hash, other) === 0;
}
