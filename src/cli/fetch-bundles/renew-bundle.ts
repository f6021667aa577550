/** The proof of an earlier bundle's leaf against the newest checkpoint of its log, out of the log's public files alone. */
import { fromUtf8, toBase64 } from '../../proof/bytes/encoding.js';
import { equalBytes } from '../../proof/bytes/primitives.js';
import { openCheckpoint } from '../../proof/log/checkpoint.js';
import { leafHash, verifyInclusion } from '../../proof/log/merkle.js';
import { noteKeyHash } from '../../proof/log/note.js';
import { readFrom } from '../../proof/log/tile.js';
import { inclusionProof, tilesForInclusion } from '../../proof/log/tile-proof.js';
import { tlogProof } from '../../proof/log/tlog-proof.js';
import type { ParsedBundle } from '../../proof/verify/read/parsed-bundle.js';
import { readBundle } from '../../proof/verify/read/read-bundle.js';
import type { Trust, TrustedLog } from '../../proof/verify/trust.js';
import {
  fetchCheckpoint,
  fetchTile,
  type LogSource,
  type Net,
  SourceError,
  tiledSource,
} from '../audit/source/log-source.js';
import { UsageError } from '../cli.js';

/** A bundle's JSON with the newest checkpoint, the same proof as a C2SP tlog-proof, and the checkpoint's tree size. */
export type Renewed = { json: string; tlogProof: string; size: number };

/** The members of a bundle's JSON that change. */
type BundleJson = { checkpoints: { tree_size: number }[]; witnesses: { tree_size: number }[] };

/**
 * Renews a bundle. Its earlier checkpoints stay as far as witnesses attested to them. Throws UsageError if it is no bundle of
 * a log of the trust roots, SourceError if files cannot be fetched, FormatError if they are not those of the log, Error if the
 * log shows a smaller tree than the bundle has.
 */
export async function renewBundle(net: Net, bundle: Uint8Array, trust: Trust): Promise<Renewed> {
  const parsed = parse(bundle);
  const { logIndex, body } = parsed.entry;
  const log = findLog(parsed, trust);
  const source = tiledSource('the log', log.url);
  const bytes = await fetchCheckpoint(net, source);
  if (bytes === undefined) throw new SourceError(`there is no checkpoint at ${source.checkpoint}`);
  const note = fromUtf8(bytes);
  const { size, rootHash } = await openCheckpoint(note, log.key);
  const known = parsed.checkpoints.at(-1)?.size ?? 0;
  if (size < known)
    throw new Error(
      `the log shows ${size} leaves at ${source.checkpoint}, and the bundle has a checkpoint of ${known}`,
    );
  const hashes = await fetchProof(net, source, logIndex, size);
  if (!verifyInclusion({ leafHash: leafHash(body), index: logIndex, size, root: rootHash }, hashes))
    throw new Error(
      `the tiles at ${log.url} do not prove the leaf ${logIndex} in the checkpoint of ${size} leaves`,
    );
  const newest = { tree_size: size, note, inclusion_proof: hashes.map(toBase64) };
  const document = JSON.parse(fromUtf8(bundle)) as BundleJson;
  return { json: withCheckpoint(document, newest), tlogProof: tlogProof(logIndex, hashes, note), size };
}

function parse(bundle: Uint8Array): ParsedBundle {
  const { parsed, unreadable, uncheckable, problems } = readBundle(bundle);
  if (parsed !== undefined) return parsed;
  const [first] = problems;
  const reason = unreadable ?? uncheckable ?? `${first?.path} ${first?.message}`;
  throw new UsageError(`the file is no proof bundle that can be renewed: ${reason}`);
}

function findLog({ checkpoints, entry }: ParsedBundle, { logs }: Trust): TrustedLog {
  const origin = checkpoints[0]?.origin ?? '';
  const log = logs.find(
    ({ key }) => key.name === origin && equalBytes(noteKeyHash(origin, key.publicKey), entry.logId),
  );
  if (log === undefined) throw new UsageError(`the trust roots have no log ${origin} with the bundle's key`);
  if (log.url === '') throw new UsageError(`the trust roots do not say where ${origin} is published`);
  return log;
}

async function fetchProof(net: Net, source: LogSource, index: number, size: number): Promise<Uint8Array[]> {
  const tiles = await Promise.all(
    tilesForInclusion(index, size).map(async (ref) => ({
      ...ref,
      hashes: await fetchTile(net, source, ref),
    })),
  );
  return inclusionProof(index, size, readFrom(tiles));
}

/** The first checkpoint is the batch's; of the others those remain that a witness attested to. */
function withCheckpoint(document: BundleJson, newest: { tree_size: number }): string {
  const isNeeded = (size: number, i: number) =>
    i === 0 || document.witnesses.some(({ tree_size }) => tree_size === size);
  const kept = document.checkpoints.filter(({ tree_size }, i) => isNeeded(tree_size, i));
  const isThere = kept.some(({ tree_size }) => tree_size === newest.tree_size);
  return JSON.stringify({ ...document, checkpoints: isThere ? kept : [...kept, newest] });
}
