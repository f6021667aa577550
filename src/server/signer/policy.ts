/** What a key may sign, by its purpose: the table in docs/signing-process.md. */
import type { Purpose } from '../../config/signer/keys.js';
import { fromUtf8, utf8 } from '../../proof/bytes/encoding.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { type Checkpoint, checkpointBody, parseCheckpointBody } from '../../proof/log/checkpoint.js';
import { SigningError } from '../keys/signing-error.js';
import type { SignerAlgorithm } from './backends/backend.js';

/** The algorithm of each purpose. */
export const ALGORITHMS: Readonly<Record<Purpose, SignerAlgorithm>> = {
  statements: 'ecdsa-p256',
  receipts: 'ecdsa-p256',
  log: 'ed25519',
  tuf: 'ed25519',
};

/** A CBOR array of four, whose first element is the text `Signature1` (RFC 9052, section 4.4). */
const SIGNATURE1 = Uint8Array.of(0x84, 0x6a, ...utf8('Signature1'));

const BEGINNINGS: Readonly<Record<Exclude<Purpose, 'log'>, readonly Uint8Array[]>> = {
  statements: [utf8('DSSEv1 28 application/vnd.in-toto+json ')],
  receipts: [SIGNATURE1],
  tuf: [utf8('{"_type":"snapshot",'), utf8('{"_type":"timestamp",')],
};

/** Throws SigningError if a key of this purpose may not sign the data. @returns the checkpoint, of a log's key */
export function assertMaySign(
  { purpose, origin }: { purpose: Purpose; origin: string | undefined },
  data: Uint8Array,
): Checkpoint | undefined {
  if (purpose === 'log') return readCheckpoint(origin, data);
  const isKnown = BEGINNINGS[purpose].some(
    (beginning) => Buffer.compare(data.subarray(0, beginning.length), beginning) === 0,
  );
  if (isKnown) return undefined;
  throw new SigningError(`the key is for ${purpose} and signs nothing else`);
}

function readCheckpoint(origin: string | undefined, data: Uint8Array): Checkpoint {
  try {
    const checkpoint = parseCheckpointBody(fromUtf8(data));
    const isCanonical = Buffer.compare(utf8(checkpointBody(checkpoint)), data) === 0;
    if (isCanonical && checkpoint.origin === origin) return checkpoint;
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
  }
  throw new SigningError(`the key is for checkpoints of ${origin} and signs nothing else`);
}
