/**
 * The newest checkpoint that was signed of each log, in a folder: durable before its signature is handed out, so that
 * neither a thief of the socket nor a restored service gets a second history of a log signed. Several processes may share
 * the folder.
 */
import { mkdir } from 'node:fs/promises';
import { utf8 } from '../../proof/bytes/encoding.js';
import { sha256 } from '../../proof/bytes/primitives.js';
import { originHash } from '../../proof/log/add-checkpoint.js';
import type { Checkpoint } from '../../proof/log/checkpoint.js';
import { createSerialQueue, type SerialQueue } from '../core/serial-queue.js';
import { SigningError } from '../keys/signing-error.js';
import { openFileRegister } from '../log/register/file-register.js';
import type { RegisterEntry } from '../log/register/register.js';

/** What was signed of the logs. */
export type LogHistory = {
  /** Records a checkpoint. Resolves once it is durable; rejects with a SigningError if it contradicts what was signed. */
  advance(checkpoint: Checkpoint): Promise<void>;
};

/** Another process on the same folder can be faster this often. */
const TRIES = 3;

/** Opens the history in a folder, which is created if it is missing. */
export async function openLogHistory(folder: string): Promise<LogHistory> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const register = openFileRegister(folder);
  const queues = new Map<string, SerialQueue>();
  const advance = async (next: Checkpoint) => {
    for (let tries = 0; tries < TRIES; tries++) {
      const standing = await register.read(originHash(next.origin));
      if (standing !== undefined && isSigned(standing, next)) return;
      if (await register.replace(standing, entryOf(next))) return;
    }
    throw new SigningError(
      `other processes sign checkpoints of ${next.origin} from the same folder: try again`,
    );
  };
  return {
    advance: (checkpoint) => {
      const queue = queues.get(checkpoint.origin) ?? createSerialQueue();
      queues.set(checkpoint.origin, queue);
      return queue(() => advance(checkpoint));
    },
  };
}

/** Whether a checkpoint is the newest that was signed. Throws SigningError if it contradicts that. */
function isSigned(standing: RegisterEntry, { origin, size, rootHash }: Checkpoint): boolean {
  if (size < standing.size) {
    throw new SigningError(`size ${size} of ${origin} is below ${standing.size}, which was signed before`);
  }
  if (size > standing.size) return false;
  if (Buffer.compare(rootHash, standing.rootHash) === 0) return true;
  throw new SigningError(`another root of ${origin} at size ${size} was signed before`);
}

/** An epoch has an origin of its own: entries depend on the origin alone. */
function entryOf({ origin, size, rootHash }: Checkpoint): RegisterEntry {
  return { origin: originHash(origin), size, rootHash, keyHash: sha256(utf8(origin)) };
}
