/** A small log, published over HTTP, whose every part can be put wrong. */
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Test } from 'tap';
import { TrustRootsSchema } from '../../../gen/attestation/v1/service_pb.js';
import { toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { parseCheckpoint, signCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { cosign } from '../../../src/proof/log/cosignature.js';
import { encodeEntries } from '../../../src/proof/log/entries.js';
import { HASH_BYTES, leafHash } from '../../../src/proof/log/merkle.js';
import { appendSignatures } from '../../../src/proof/log/note.js';
import { extendTiles } from '../../../src/proof/log/tile.js';
import { TILE_WIDTH, tilePath } from '../../../src/proof/log/tile-path.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../../src/proof/statement/dsse.js';
import { leafOf } from '../../../src/proof/statement/leaf.js';
import { restJson } from '../../proof/rest-json.js';
import { makeService, type Service } from '../../proof/sample.js';
import { makeTrustRoots } from '../../proof/sample-trust-roots.js';
import { listen } from '../../support/servers/rpc-server.js';

/** An entry by a service. */
export function entry(by: Service, i: number): Uint8Array {
  const signed = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, utf8(`statement ${i}`));
  return leafOf(signed, by.dsse.sign(signed), by.dsse.publicKey).record;
}

/** A service, another one whose keys it does not know, 700 entries by the first, and the same but for one. */
export async function makeHistories(t: Test) {
  const dir = t.testdir();
  const service = await makeService(join(dir, 'service'));
  const stranger = await makeService(join(dir, 'stranger'));
  const entries = Array.from({ length: 700 }, (_, i) => entry(service, i));
  return { service, stranger, entries, fork: entries.with(100, entry(service, 1_000)) };
}

/** Of the note: who signs as the log, the size if not all entries, who cosigns, and when. */
export type NoteOptions = {
  by?: Service;
  size?: number;
  cosigners?: readonly Service['cosigner'][];
  at?: Date;
};

/** The signed checkpoint over entries. */
export function noteOver(
  service: Service,
  entries: readonly Uint8Array[],
  { by = service, size = entries.length, cosigners = [], at = new Date() }: NoteOptions = {},
): string {
  const { root } = extendTiles({ size: 0, tiles: [] }, entries.slice(0, size).map(leafHash));
  const note = signCheckpoint({ origin: service.origin, size, rootHash: root }, by.log);
  const { text } = parseCheckpoint(note).note;
  const seconds = Math.floor(at.getTime() / 1000);
  return appendSignatures(
    note,
    cosigners.map((cosigner) => cosign(text, seconds, cosigner)),
  );
}

/** The files of a log: entries and tiles of a tree, by their paths. */
export function treeFiles(entries: readonly Uint8Array[]): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (let index = 0; index * TILE_WIDTH < entries.length; index++) {
    const records = entries.slice(index * TILE_WIDTH, (index + 1) * TILE_WIDTH);
    files.set(tilePath({ level: 'entries', index, width: records.length }), encodeEntries(records));
  }
  const { tiles } = extendTiles({ size: 0, tiles: [] }, entries.map(leafHash));
  for (const { level, index, hashes } of tiles)
    files.set(tilePath({ level, index, width: hashes.length / HASH_BYTES }), hashes);
  return files;
}

export type PublishedLog = Awaited<ReturnType<typeof publishLog>>;

/**
 * Publishes the log of a service, at first without a checkpoint. `files` are by path, `status` replaces a response's
 * status, `behave` a response as a whole. `show` publishes entries and the checkpoint over them below a folder.
 */
export async function publishLog(t: Test, service: Service) {
  const files = new Map<string, Uint8Array>();
  const status = new Map<string, number>();
  const behave = new Map<string, (response: ServerResponse) => void>();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = String(request.url).slice(1);
    asked.push(path);
    const behaviour = behave.get(path);
    if (behaviour) return behaviour(response);
    const bytes = files.get(path);
    response.writeHead(status.get(path) ?? (bytes ? 200 : 404)).end(bytes);
  });
  const url = await listen(t, server);
  const roots = makeTrustRoots(service);
  for (const log of roots.transparencyLogs) log.url = `${url}/log`;
  files.set('trust_roots.json', utf8(JSON.stringify(restJson(TrustRootsSchema, roots))));
  const showNote = (note: string, folder = 'log') => void files.set(`${folder}/checkpoint`, utf8(note));
  const show = (entries: readonly Uint8Array[], options: NoteOptions & { folder?: string } = {}) => {
    const { folder = 'log' } = options;
    for (const [path, bytes] of treeFiles(entries)) files.set(`${folder}/${path}`, bytes);
    showNote(noteOver(service, entries, options), folder);
  };
  /** Shows a note as a witness does, below its prefix. */
  const witnessNote = (note: string, folder = 'witness') =>
    showNote(note, `${folder}/${toHex(sha256(utf8(service.origin)))}`);
  return { url, roots, files, status, behave, asked, show, showNote, witnessNote };
}
