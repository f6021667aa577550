/**
 * A C2SP witness (tlog-witness) as the checkpoint register. A log's entry is the newest checkpoint that the witness has
 * cosigned; adding a checkpoint is the compare-and-swap, since the witness takes one only with a proof that it continues
 * that one. An answer of the witness counts only with a cosignature by its configured keys, except that it has
 * nothing of a log.
 */
import { fromUtf8, utf8 } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { checkpointBody, parseCheckpoint } from '../../../proof/log/checkpoint.js';
import { encodeSignatureLine } from '../../../proof/log/note.js';
import {
  type NewRegisterEntry,
  type Register,
  type RegisterEntry,
  RegisterError,
} from '../../log/register/register.js';
import { type BoundedAnswer, type RequestDeps, WitnessRequestError } from '../clients/bounded-request.js';
import { readCosignatures } from '../clients/cosignature-lines.js';
import {
  addCheckpoint,
  checkpointUrl,
  findKnownSize,
  getCheckpoint,
  type LogWitnessAddress,
  refusal,
} from '../clients/log-witness-requests.js';

/** Entries are read within transactions, which Postgres ends after they were idle for three seconds. */
const READ_TIMEOUT_MS = 2_000;
const ADD_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;

type Deps = RequestDeps & { readonly address: LogWitnessAddress };

/** Opens the register of a witness. Sends nothing yet. */
export function openWitnessRegister(deps: RequestDeps, address: LogWitnessAddress): Register {
  const all = { ...deps, address };
  const location = (origin: string) => checkpointUrl(address.url, origin);
  return {
    location,
    read: (origin) => withLocation(location(origin), 'read', () => find(all, origin)),
    replace: (standing, next) =>
      withLocation(location(next.origin), 'written', () => replace(all, standing, next)),
  };
}

async function withLocation<T>(location: string, what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof WitnessRequestError || error instanceof FormatError)) throw error;
    const message = `the checkpoint register ${location} cannot be ${what}: ${error.message}`;
    throw new RegisterError(message, { cause: error });
  }
}

/** The log's entry. Throws if the witness answers with anything but a checkpoint that it has cosigned. */
async function find({ address, ...deps }: Deps, origin: string): Promise<RegisterEntry | undefined> {
  const wanted = { ...address, timeoutMs: READ_TIMEOUT_MS };
  const answer = await getCheckpoint(deps, wanted, origin, new AbortController().signal);
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) {
    throw new WitnessRequestError('http_status', `the witness answered with status ${answer.status}`);
  }
  const note = fromUtf8(answer.body);
  const checkpoint = parseCheckpoint(note);
  const { text, signatures } = checkpoint.note;
  await readCosignatures(utf8(signatures.map(encodeSignatureLine).join('')), text, address.keys);
  if (checkpoint.origin !== origin) throw new FormatError('the checkpoint is of another log');
  const { size, rootHash } = checkpoint;
  return { origin, size, rootHash, keyHash: undefined, note };
}

/**
 * Adds the checkpoint to the witness, from the size that it was compared with. If the witness knows another size but
 * serves the checkpoint that was compared with, it stopped between storing the one and the other: then from that size.
 */
async function replace(
  deps: Deps,
  standing: RegisterEntry | undefined,
  next: NewRegisterEntry,
): Promise<boolean> {
  const comparedSize = standing?.size ?? 0;
  const answer = await add(deps, next, comparedSize);
  if (answer.status === 200) return true;
  if (!(await stillHas(deps, answer, standing, next))) return false;
  const knownSize = findKnownSize(answer) ?? 0;
  if (answer.status !== 409 || knownSize === comparedSize) throw refusalOf(deps, answer, next, comparedSize);
  if (knownSize < comparedSize || knownSize > next.size) throw contradiction(knownSize, comparedSize);
  const second = await add(deps, next, knownSize);
  if (second.status === 200) return true;
  if (!(await stillHas(deps, second, standing, next))) return false;
  throw refusalOf(deps, second, next, knownSize);
}

/** Sends the checkpoint. Throws if status 200 comes without a valid cosignature. */
async function add(
  { address, ...deps }: Deps,
  next: NewRegisterEntry,
  oldSize: number,
): Promise<BoundedAnswer> {
  const wanted = { ...address, timeoutMs: ADD_TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES };
  const answer = await addCheckpoint(deps, wanted, next, oldSize, new AbortController().signal);
  if (answer.status === 200) await readCosignatures(answer.body, checkpointBody(next), address.keys);
  return answer;
}

/** After a conflict, whether the entry is still the one that was compared with. Throws for any other refusal. */
async function stillHas(
  deps: Deps,
  answer: BoundedAnswer,
  standing: RegisterEntry | undefined,
  next: NewRegisterEntry,
): Promise<boolean> {
  if (answer.status !== 409 && answer.status !== 422) {
    throw refusalOf(deps, answer, next, standing?.size ?? 0);
  }
  const now = await find(deps, next.origin);
  if (now === undefined || standing === undefined) return now === standing;
  return now.size === standing.size && equalBytes(now.rootHash, standing.rootHash);
}

function refusalOf(
  { address }: Deps,
  answer: BoundedAnswer,
  { origin, size: treeSize }: NewRegisterEntry,
  oldSize: number,
): WitnessRequestError {
  return refusal(answer, { origin, treeSize }, oldSize, address);
}

function contradiction(knownSize: number, servedSize: number): WitnessRequestError {
  return new WitnessRequestError(
    'conflict',
    `ALARM: the witness serves a cosigned checkpoint of size ${servedSize}, and says that it has cosigned size ${knownSize}: it was restored from a backup, or serves an old checkpoint, or the database lost leaves`,
  );
}
