/**
 * Cosignatures (C2SP tlog-cosignature, cosignature/v1): a witness that has checked the log's consistency signs the
 * checkpoint body together with the time it did. The signature line holds 8 bytes of time, big-endian seconds, and
 * the 64-byte Ed25519 signature.
 */
import { concatBytes, utf8 } from '../bytes/encoding.js';
import { verifyEd25519 } from '../bytes/primitives.js';
import { COSIGNATURE_V1_KEY, isSameKey, type NoteKey, type NoteSignature, noteKey } from './note.js';

const TIME_BYTES = 8;
const SIGNATURE_BYTES = 64;

/** A witness's key: `publicKey` is the raw 32 bytes, `sign` makes a 64-byte Ed25519 signature. */
interface Cosigner {
  readonly name: string;
  readonly publicKey: Uint8Array;
  readonly sign: (data: Uint8Array) => Uint8Array;
}

/** The cosignature line over a checkpoint body at a time in Unix seconds. */
export function cosign(body: string, unixSeconds: number, cosigner: Cosigner): NoteSignature {
  const { name, keyId } = noteKey(cosigner.name, cosigner.publicKey, COSIGNATURE_V1_KEY);
  const time = new Uint8Array(TIME_BYTES);
  new DataView(time.buffer).setBigUint64(0, BigInt(unixSeconds));
  return { name, keyId, signature: concatBytes(time, cosigner.sign(signedBytes(body, unixSeconds))) };
}

/** The time, in Unix seconds, at which this witness signed the body; undefined when the line is not its valid cosignature. */
export async function verifyCosignature(
  body: string,
  line: NoteSignature,
  key: NoteKey,
): Promise<number | undefined> {
  if (key.type !== COSIGNATURE_V1_KEY || !isSameKey(line, key)) return undefined;
  const time = findCosignatureTime(line);
  if (time === undefined) return undefined;
  const signature = line.signature.subarray(TIME_BYTES);
  return (await verifyEd25519(key.publicKey, signedBytes(body, time), signature)) ? time : undefined;
}

function findCosignatureTime({ signature }: NoteSignature): number | undefined {
  if (signature.length !== TIME_BYTES + SIGNATURE_BYTES) return undefined;
  const time = new DataView(signature.buffer, signature.byteOffset).getBigUint64(0);
  return time <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(time) : undefined;
}

function signedBytes(body: string, unixSeconds: number): Uint8Array {
  return utf8(`cosignature/v1\ntime ${unixSeconds}\n${body}`);
}
