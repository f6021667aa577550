/**
 * The checkpoint register in a store of objects: S3, Google Cloud Storage, Azure Blob Storage. A log's entry is its signed
 * checkpoint, in the object `<prefix>/<origin>/checkpoint`. It is written on the condition that the store holds the version
 * that was compared (`If-Match`, `If-None-Match`, `ifGenerationMatch`), which is the compare-and-swap. A store that ignores
 * such conditions is not used: the first write of a process is preceded by a probe.
 */
import { randomInt } from 'node:crypto';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { parseCheckpoint } from '../../../proof/log/checkpoint.js';
import { bytesObject } from '../../exports/destinations/bytes-object.js';
import { DestinationError } from '../../exports/destinations/destination.js';
import type { OperatorStore } from '../../exports/destinations/operator-store.js';
import { probeStore } from '../../exports/destinations/probe.js';
import { type NewRegisterEntry, type Register, type RegisterEntry, RegisterError } from './register.js';

/** Entries are read within transactions, which Postgres ends after they were idle for three seconds. */
const READ_TIMEOUT_MS = 2_000;
const WRITE_TIMEOUT_MS = 10_000;
/** Names of probes, so that processes that start at once do not disturb each other's. */
const PROBES = 64;

type Found = { entry: RegisterEntry; version: string };

/** The register in a store. */
export function openObjectRegister({ store, ...storage }: OperatorStore): Register {
  const nameOf = (origin: string) => storage.nameOf(`${origin}/checkpoint`);
  const location = (origin: string) => storage.location(`${origin}/checkpoint`);
  const find = async (origin: string, signal: AbortSignal): Promise<Found | undefined> => {
    const stored = await store.readText(nameOf(origin), signal);
    return stored && { entry: entryOf(origin, stored.text), version: stored.version };
  };
  const probe = once((signal: AbortSignal) =>
    probeStore(store, storage.nameOf(`probe/${randomInt(PROBES)}`), signal),
  );
  const put = async (
    standing: RegisterEntry | undefined,
    next: NewRegisterEntry,
    signal: AbortSignal,
  ): Promise<boolean> => {
    await probe(signal);
    const found = await find(next.origin, signal);
    if (isSame(found?.entry, next)) return true;
    if (!isSame(found?.entry, standing)) return false;
    const object = bytesObject({
      name: nameOf(next.origin),
      content: next.note,
      contentType: 'text/plain; charset=utf-8',
      cacheControl: 'no-store',
      revision: next.size,
    });
    if (await store.write(object, found, signal)) return true;
    // If an SDK sends a write again whose answer was lost, the condition of the second does not hold.
    return isSame((await find(next.origin, signal))?.entry, next);
  };
  return {
    location,
    read: (origin) =>
      withLocation(
        location(origin),
        'read',
        READ_TIMEOUT_MS,
        async (signal) => (await find(origin, signal))?.entry,
      ),
    replace: (standing, next) =>
      withLocation(location(next.origin), 'written', WRITE_TIMEOUT_MS, (signal) =>
        put(standing, next, signal),
      ),
  };
}

async function withLocation<T>(
  location: string,
  what: string,
  timeoutMs: number,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    return await run(signal);
  } catch (error) {
    const isKnown = error instanceof DestinationError || error instanceof FormatError;
    if (!isKnown && !signal.aborted) throw error;
    const reason = signal.aborted ? `no answer within ${timeoutMs} ms` : (error as Error).message;
    const message = `the checkpoint register ${location} cannot be ${what}: ${reason}`;
    throw new RegisterError(message, { cause: error });
  }
}

function entryOf(origin: string, note: string): RegisterEntry {
  const { origin: found, size, rootHash } = parseCheckpoint(note);
  if (found !== origin) throw new FormatError('the checkpoint is of another log');
  return { origin, size, rootHash, keyHash: undefined, note };
}

function isSame(a: RegisterEntry | undefined, b: RegisterEntry | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.size === b.size && equalBytes(a.rootHash, b.rootHash);
}

/** Runs work until it has succeeded once. */
function once(work: (signal: AbortSignal) => Promise<void>): (signal: AbortSignal) => Promise<void> {
  let isDone = false;
  return async (signal) => {
    if (isDone) return;
    await work(signal);
    isDone = true;
  };
}
