/** Checks the record of an archived batch. */
import { parseCheckpoint, verifyNoteSignature } from '../../../proof/log/checkpoint.js';
import { noteKey, parseNote } from '../../../proof/log/note.js';
import { ArchiveError } from './archive-error.js';
import { HASH, HEX, openMembers, TIME } from './members.js';

/** The batch as the manifest lists it, and the root of the leaves up to its end, in hex. */
export type DerivedBatch = {
  readonly batchId: string;
  readonly firstIndex: number;
  readonly treeSize: number;
  readonly rootHash: string;
};

/** The log whose key must have signed the checkpoint; raw Ed25519. */
type Signed = { readonly origin: string; readonly publicKey: Uint8Array };

const WITNESS = /^[a-z0-9-]{1,64}$/;
const MAX_STATUS = 4;

/** Throws ArchiveError unless the record is of this batch, and its checkpoint has the root of its leaves, signed by the log. */
export async function checkBatch(value: unknown, derived: DerivedBatch, log: Signed): Promise<void> {
  const batch = openMembers(value, `the record of batch ${derived.batchId}`);
  const fail = (problem: string): never => {
    throw new ArchiveError(`batch ${derived.batchId}: ${problem}`);
  };
  const isSame =
    batch.text('id') === derived.batchId &&
    batch.integer('first_index') === derived.firstIndex &&
    batch.integer('tree_size') === derived.treeSize;
  if (!isSame) fail('its record is of another batch');
  if (batch.text('root_hash', HASH) !== derived.rootHash) fail('its root is not that of its leaves');
  const note = batch.text('note');
  const { origin, size, rootHash } = parseCheckpoint(note);
  const isSigned = await verifyNoteSignature(parseNote(note), noteKey(log.origin, log.publicKey));
  if (!isSigned) fail("its checkpoint is not signed by the log's key");
  if (origin !== log.origin || size !== derived.treeSize) fail('its checkpoint is another one');
  if (Buffer.from(rootHash).toString('hex') !== derived.rootHash)
    fail('the root of its checkpoint is not that of its leaves');
  const status = batch.integer('status');
  if (status < 2 || status > MAX_STATUS) fail('it has not settled');
  batch.integer('policy_version');
  for (const name of ['sealed_at', 'deadline_at', 'registered_at']) batch.text(name, TIME);
  batch.optional('witnessed_at', TIME);
  for (const one of batch.list('evidence')) checkEvidence(one, derived);
  for (const one of batch.list('transitions')) checkTransition(one, derived);
}

function checkEvidence(value: unknown, { batchId, firstIndex, treeSize }: DerivedBatch): void {
  const what = `evidence of batch ${batchId}`;
  const evidence = openMembers(value, what);
  const size = evidence.integer('tree_size');
  if (size <= firstIndex || size > treeSize) throw new ArchiveError(`${what} is of another batch`);
  evidence.text('witness', WITNESS);
  evidence.integer('kind');
  evidence.text('evidence', HEX);
  evidence.object('detail');
  evidence.text('landed_at', TIME);
}

function checkTransition(value: unknown, { batchId }: DerivedBatch): void {
  const transition = openMembers(value, `a transition of batch ${batchId}`);
  if (transition.integer('status') > MAX_STATUS)
    throw new ArchiveError(`a transition of batch ${batchId} is of an unknown kind`);
  transition.text('at', TIME);
  for (const name of ['landed', 'missing'])
    for (const witness of transition.list(name))
      if (!WITNESS.test(String(witness)))
        throw new ArchiveError(`batch ${batchId} has a witness without a name`);
}
