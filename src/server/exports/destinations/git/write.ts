/**
 * Writes of objects: one commit for each object that changed, on top of what is in the branch.
 *
 * A blob has no revision, so revisions cannot be compared as in object stores. What stops a stalled writer is
 * the branch's newest commit: it is read first, then `isCurrent` is asked, and the push is accepted only if that commit is
 * still the newest. The writer that took over has moved the branch by then, so the stalled one starts over and is no longer
 * current.
 *
 * Only a write of a content that is already there moves nothing. It is safe unless a stalled writer holds another content,
 * older than this one and newer than the one that is there, which takes three revisions. So from the third revision on
 * such a write makes a commit without changes, unless the newest commit is of this very write.
 */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { exponentialMs } from '../../../../protocol/backoff.js';
import { DestinationError, type WriteControl, type WriteOutcome } from '../destination.js';
import type { ExportObject } from '../object-store.js';
import { LostRace } from './git-command.js';
import type { File, Repository } from './repository.js';

export type Target = {
  readonly repository: Repository;
  readonly branch: string;
  readonly maxAttempts: number;
  /** Between 0 and 1, for the delays between attempts. */
  readonly random: () => number;
};

type Write = WriteControl & {
  readonly file: File;
  readonly message: string;
  /** Whether a file that is there already suffices, on top of this commit's message. */
  suffices(headMessage: string): boolean;
  /** Whether the right to write is checked even if there is nothing to write. */
  readonly checksAccess: boolean;
};

const MAX_MESSAGE_LENGTH = 500;
const BACKOFF = { firstMs: 100, maxMs: 5_000 };
const FENCED_REVISION = 3;
const NAME = /^[A-Za-z0-9_=-][A-Za-z0-9._=-]*(?:\/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*$/;
const PROBE = Buffer.from('This file shows that the attestation service can write here.\n');

/** Commits an object, as `OpenDestination.write` says. */
export async function writeObject(
  target: Target,
  object: ExportObject,
  control: WriteControl,
): Promise<WriteOutcome> {
  const file = await toFile(object, control.signal);
  const message = messageOf(object);
  const suffices = (head: string) => object.revision < FENCED_REVISION || head.trim() === message.trim();
  return untilWritten(target, { ...control, file, message, suffices, checksAccess: false });
}

/** Commits a file at `path` unless it is there, and checks in any case that the credentials permit a push. */
export async function writeProbe(target: Target, path: string, signal: AbortSignal): Promise<void> {
  const file = await toFile({ name: path, bytes: PROBE.length, read: () => [PROBE] }, signal);
  const write = { file, message: `Add ${path}`, suffices: () => true, checksAccess: true };
  await untilWritten(target, { ...write, signal, isCurrent: async () => true });
}

function messageOf({ name, revision, sha256 }: ExportObject): string {
  const batch = name.slice(name.lastIndexOf('/') + 1);
  const hash = Buffer.from(sha256).toString('hex');
  return `Export ${batch}, revision ${revision}\n\nObject: ${name}\nRevision: ${revision}\nSHA-256: ${hash}\n`;
}

type Content = { name: string; bytes: number; read(): AsyncIterable<Uint8Array> | Iterable<Uint8Array> };

/** Computes the name of the blob: the SHA-1 of a header and the bytes. */
async function toFile({ name, bytes, read }: Content, signal: AbortSignal): Promise<File> {
  if (!NAME.test(name)) throw new DestinationError('the name of the object is not a path in git');
  const hash = createHash('sha1').update(`blob ${bytes}\0`);
  for await (const chunk of read()) {
    signal.throwIfAborted();
    hash.update(chunk);
  }
  const asFile = async function* () {
    yield* read();
  };
  return { path: name, blob: hash.digest('hex'), bytes, read: asFile };
}

async function untilWritten(target: Target, write: Write): Promise<WriteOutcome> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await writeOnce(target, write);
    } catch (error) {
      if (!(error instanceof LostRace)) throw error;
      if (attempt === target.maxAttempts) throw exhausted(target, error);
      await pause(target, attempt, write.signal);
    }
  }
}

async function writeOnce({ repository }: Target, write: Write): Promise<WriteOutcome> {
  const { file, message, signal } = write;
  const head = await repository.fetchHead(signal);
  if (!(await write.isCurrent())) return { outcome: 'superseded', revision: undefined };
  const commit = (await isDone(repository, head, write))
    ? head
    : await repository.commit(head, file, message, signal);
  if (commit !== undefined && (commit !== head || write.checksAccess)) await repository.push(commit, signal);
  return { outcome: 'written' };
}

async function isDone(repository: Repository, head: string | undefined, write: Write): Promise<boolean> {
  if (head === undefined || !(await repository.contains(head, write.file, write.signal))) return false;
  return write.suffices(await repository.readMessage(head, write.signal));
}

function exhausted({ branch, maxAttempts }: Target, cause: Error): DestinationError {
  const advice = `others pushed to the branch ${branch} during each of ${maxAttempts} attempts: use a branch of its own`;
  return new DestinationError(`${advice}; ${cause.message}`.slice(0, MAX_MESSAGE_LENGTH), { cause });
}

/** Waits for a random part of a time that doubles, so that writers who collided do not collide again. */
async function pause({ random }: Target, attempt: number, signal: AbortSignal): Promise<void> {
  const longest = exponentialMs(attempt, BACKOFF);
  await delay(random() * longest, undefined, { signal });
}
