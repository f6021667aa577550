/** Reads checkpoints (C2SP signed-note and tlog-checkpoint), written from their texts. Shares nothing with the service's own. */
import { createHash, createPublicKey, verify } from 'node:crypto';

/** What a checkpoint says. */
export type Checkpoint = { origin: string; size: number; root: Buffer };

/** A log as it was made known before the campaign. */
export type KnownLog = { origin: string; publicKeyPem: string };

/** Throws an Error that says what is wrong unless the log's own key signed it. */
export function readCheckpoint(note: string, { origin, publicKeyPem }: KnownLog): Checkpoint {
  const split = note.lastIndexOf('\n\n');
  const body = note.slice(0, split + 1);
  const [name = '', size = '', root = '', ...more] = body.split('\n');
  if (split < 0 || name !== origin || !/^(0|[1-9]\d*)$/.test(size) || more.join('') !== '')
    throw new Error(`is no checkpoint of ${origin}`);
  const key = createPublicKey(publicKeyPem);
  const raw = key.export({ type: 'spki', format: 'der' }).subarray(-32);
  const id = createHash('sha256')
    .update(`${origin}\n`)
    .update(Buffer.of(1))
    .update(raw)
    .digest()
    .subarray(0, 4);
  const isSigned = note
    .slice(split + 2)
    .split('\n')
    .filter((line) => line.startsWith(`— ${origin} `))
    .map((line) => Buffer.from(line.slice(line.lastIndexOf(' ') + 1), 'base64'))
    .some(
      (given) => given.subarray(0, 4).equals(id) && verify(null, Buffer.from(body), key, given.subarray(4)),
    );
  if (!isSigned) throw new Error('is not signed by the log');
  return { origin: name, size: Number(size), root: Buffer.from(root, 'base64') };
}
