/**
 * Cosignatures (C2SP tlog-cosignature): a witness that has checked the log's consistency signs the checkpoint together
 * with the time it did. A signature line holds 8 bytes of time, big-endian seconds, and the signature: 64 bytes of
 * Ed25519 over the body (cosignature/v1), or 2,420 bytes of ML-DSA-44 over origin, size and root. A log may sign its
 * own checkpoints in the second form, which is safe from quantum computers.
 */
import { concatBytes, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { ML_DSA_44_SIGNATURE_BYTES, verifyMlDsa44 } from '../bytes/ml-dsa.js';
import { verifyEd25519 } from '../bytes/primitives.js';
import { parseCheckpointBody } from './checkpoint.js';
import {
  COSIGNATURE_V1_KEY,
  isSameKey,
  ML_DSA_44_NOTE_KEY,
  type NoteKey,
  type NoteSignature,
  noteKey,
} from './note.js';

const TIME_BYTES = 8;
const MAX_NAME_BYTES = 255;

/** A form of cosignatures: signed bytes, signature length in bytes, verification. */
type Form = {
  readonly message: (body: string, unixSeconds: number, cosignerName: string) => Uint8Array;
  readonly signatureBytes: number;
  readonly verify: (publicKey: Uint8Array, data: Uint8Array, signature: Uint8Array) => Promise<boolean>;
};

const FORMS: ReadonlyMap<number, Form> = new Map([
  [COSIGNATURE_V1_KEY, { message: cosignatureV1Message, signatureBytes: 64, verify: verifyEd25519 }],
  [
    ML_DSA_44_NOTE_KEY,
    { message: cosignedMessage, signatureBytes: ML_DSA_44_SIGNATURE_BYTES, verify: verifyMlDsa44 },
  ],
]);

/** A key that cosigns. `type` is cosignature/v1 by default; `publicKey` is raw, and so are the signatures. */
export interface Cosigner {
  readonly name: string;
  readonly type?: number;
  readonly publicKey: Uint8Array;
  readonly sign: (data: Uint8Array) => Uint8Array;
}

/** The cosignature line over a checkpoint body at a time in Unix seconds. Throws FormatError if it cannot be signed. */
export function cosign(body: string, unixSeconds: number, cosigner: Cosigner): NoteSignature {
  const key = noteKey(cosigner.name, cosigner.publicKey, cosigner.type ?? COSIGNATURE_V1_KEY);
  const form = FORMS.get(key.type);
  if (form === undefined) throw new FormatError(`keys of type ${key.type} do not cosign`);
  const signature = cosigner.sign(form.message(body, unixSeconds, key.name));
  return { name: key.name, keyId: key.keyId, signature: concatBytes(uint64(unixSeconds), signature) };
}

/**
 * The time, in Unix seconds, at which this witness signed the body; undefined when the line is not its valid cosignature.
 * A signature without a time is no statement of a witness.
 */
export async function verifyCosignature(
  body: string,
  line: NoteSignature,
  key: NoteKey,
): Promise<number | undefined> {
  const time = await verifyTimedSignature(body, line, key);
  return time === 0 ? undefined : time;
}

/** As {@link verifyCosignature}, but for a log's own signature, which may lack a time: it is 0 then. */
export async function verifyTimedSignature(
  body: string,
  line: NoteSignature,
  key: NoteKey,
): Promise<number | undefined> {
  const form = FORMS.get(key.type);
  if (form === undefined || !isSameKey(line, key)) return undefined;
  if (line.signature.length !== TIME_BYTES + form.signatureBytes) return undefined;
  const time = findTime(line);
  const message = time === undefined ? undefined : findMessage(form, body, time, key.name);
  if (message === undefined) return undefined;
  const isValid = await form.verify(key.publicKey, message, line.signature.subarray(TIME_BYTES));
  return isValid ? time : undefined;
}

function findTime({ signature }: NoteSignature): number | undefined {
  const time = new DataView(signature.buffer, signature.byteOffset).getBigUint64(0);
  return time <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(time) : undefined;
}

function findMessage(form: Form, body: string, unixSeconds: number, name: string): Uint8Array | undefined {
  try {
    return form.message(body, unixSeconds, name);
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}

function cosignatureV1Message(body: string, unixSeconds: number): Uint8Array {
  return utf8(`cosignature/v1\ntime ${unixSeconds}\n${body}`);
}

/** `cosigned_message` of the specification, for the whole tree. Extension lines are not part of it, so bodies with them are rejected. */
function cosignedMessage(body: string, unixSeconds: number, cosignerName: string): Uint8Array {
  const { origin, size, rootHash } = parseCheckpointBody(body);
  return concatBytes(
    utf8('subtree/v1\n\0'),
    shortText(cosignerName),
    uint64(unixSeconds),
    shortText(origin),
    uint64(0),
    uint64(size),
    rootHash,
  );
}

function shortText(text: string): Uint8Array {
  const bytes = utf8(text);
  if (bytes.length > MAX_NAME_BYTES) throw new FormatError('a name or origin has more than 255 bytes');
  return concatBytes(Uint8Array.of(bytes.length), bytes);
}

function uint64(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value));
  return bytes;
}
