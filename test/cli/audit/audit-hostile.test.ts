import { randomBytes } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import {
  fetchCheckpoint,
  fetchEntries,
  fetchTile,
  SourceError,
  tiledSource,
} from '../../../src/cli/audit/source/log-source.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { encodeEntries } from '../../../src/proof/log/entries.js';
import { makeService } from '../../proof/sample.js';
import { runHere } from '../../support/calling/run-cli.js';
import { FUZZ } from '../../support/fuzz.js';
import { findFreePort } from '../../support/servers/free-port.js';
import { listen } from '../../support/servers/rpc-server.js';
import { entry, publishLog, treeFiles } from './published-log.js';

const service = await makeService(join(t.testdir(), 'service'));
const ENTRIES = Array.from({ length: 600 }, (_, i) => entry(service, i));
const net = { signal: new AbortController().signal, retryDelaysMs: [], timeoutMs: 60_000 };
const MIB = 1024 * 1024;

/** A source that responds to everything in one way. */
async function sourceOf(t: Test, behave: (response: ServerResponse, path: string) => void) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(String(request.url));
    behave(response, String(request.url));
  });
  return { source: tiledSource('the log', await listen(t, server)), asked };
}

t.test('an endless or oversized file is no file of a log, and is not read to its end', async (t) => {
  let sent = 0;
  const { source } = await sourceOf(t, (response) => {
    const piece = randomBytes(64 * 1024);
    const more = () => {
      if (response.destroyed) return;
      sent += piece.length;
      if (response.write(piece)) setImmediate(more);
      else response.once('drain', more);
    };
    more();
  });
  await t.rejects(fetchCheckpoint(net, source), { name: 'FormatError', message: /larger than 64 KiB/ });
  await t.rejects(fetchTile(net, source, { level: 0, index: 0, width: 256 }), /larger than 8 KiB/);
  t.ok(sent < 64 * MIB);
  const address = { level: 'entries', index: 0, width: 256 } as const;
  await t.rejects(fetchEntries(net, source, address), { name: 'FormatError', message: /larger than 17 MiB/ });
});

t.test('compressed responses are not decompressed', async (t) => {
  const bomb = gzipSync(Buffer.alloc(256 * MIB), { level: 9 });
  const { source } = await sourceOf(t, (response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb.subarray(0, 32 * 1024));
  });
  const bytes = await fetchCheckpoint(net, source);
  t.equal(bytes?.length, 32 * 1024);
  await t.rejects(fetchTile(net, source, { level: 0, index: 0, width: 256 }), FormatError);
});

t.test('no redirect is followed', async (t) => {
  const { source, asked } = await sourceOf(t, (response) => {
    response.writeHead(302, { location: '/secret' }).end();
  });
  await t.rejects(fetchCheckpoint(net, source), { name: 'SourceError', message: /HTTP 302/ });
  t.strictSame(asked, ['/checkpoint']);
});

t.test('a slow, silent, broken or unreachable source is no evidence about the log', async (t) => {
  const slow = await sourceOf(t, (response) => void response.writeHead(200).write('x'));
  const silent = await sourceOf(t, () => {});
  const broken = await sourceOf(
    t,
    (response) => void response.writeHead(200, { 'content-length': 9 }).end('x'),
  );
  const gone = { source: tiledSource('the log', `http://127.0.0.1:${await findFreePort()}`) };
  for (const { source } of [slow, silent, broken, gone])
    await t.rejects(fetchCheckpoint({ ...net, timeoutMs: 200 }, source), SourceError);
});

t.test('transient errors are retried, and no others', async (t) => {
  const statuses = [503, 429, 500, 200];
  const { source, asked } = await sourceOf(t, (response) => {
    response.writeHead(statuses[asked.length - 1] ?? 200).end('body');
  });
  t.strictSame(await fetchCheckpoint({ ...net, retryDelaysMs: [1, 1, 1] }, source), Buffer.from('body'));
  t.equal(asked.length, 4);
  const refusing = await sourceOf(t, (response) => void response.writeHead(403).end());
  await t.rejects(fetchCheckpoint({ ...net, retryDelaysMs: [1, 1] }, refusing.source), /HTTP 403/);
  t.equal(refusing.asked.length, 1);
});

t.test('a partial file that was replaced by the full one is cut out of it', async (t) => {
  const records = ENTRIES.slice(0, 256);
  const { source } = await sourceOf(t, (response, path) => {
    if (path.includes('.p/')) response.writeHead(404).end();
    else response.end(path.includes('entries') ? encodeEntries(records) : Buffer.alloc(8192, 1));
  });
  t.equal((await fetchTile(net, source, { level: 0, index: 0, width: 3 })).length, 96);
  const entries = await fetchEntries(net, source, { level: 'entries', index: 0, width: 3 });
  t.ok(Buffer.from(encodeEntries(records.slice(0, 3))).equals(entries));
});

t.test('any flipped byte of any file is detected', async (t) => {
  const { files, url, show } = await publishLog(t, service);
  show(ENTRIES);
  const paths = [...treeFiles(ENTRIES).keys(), 'checkpoint'].map((path) => `log/${path}`);
  let random = FUZZ.seed;
  const pick = (below: number) => {
    random = (random * 48_271) % 2_147_483_647;
    return random % below;
  };
  for (let i = 0; i < FUZZ.cases; i++) {
    const path = paths[i % paths.length]!;
    const intact = files.get(path)!;
    const at = pick(intact.length);
    files.set(path, intact.with(at, intact[at]! ^ (1 << pick(8))));
    const { code } = await runHere(['audit', url]);
    t.equal(code, 1, `${path} byte ${at}`);
    files.set(path, intact);
  }
  t.match(await runHere(['audit', url]), { code: 0 });
});

t.test('hostile files end with 1 and an explanation', async (t) => {
  const table: [path: string, bytes: Uint8Array, message: RegExp][] = [
    ['checkpoint', utf8('x'.repeat(65_537)), /larger than 64 KiB/],
    ['checkpoint', utf8(`live.log.example\n${'9'.repeat(40)}\n`), /./],
    ['tile/entries/000', new Uint8Array(0), /tile\/entries\/000: holds 0 entries, not 256/],
    ['tile/entries/000', new Uint8Array(1024), /tile\/entries\/000: more than 256 entries/],
    [
      'tile/entries/001',
      new Uint8Array(3).fill(255),
      /tile\/entries\/001: an entry bundle ends inside an entry/,
    ],
    ['tile/0/001', new Uint8Array(8191), /tile\/0\/001 does not hold 256 hashes/],
    ['tile/0/002.p/88', new Uint8Array(8192), /tile\/0\/002\.p\/88 does not hold 88 hashes/],
    [
      'tile/1/000.p/2',
      new Uint8Array(64),
      /tile\/1\/000\.p\/2 is not the tile that follows from the entries/,
    ],
  ];
  for (const [path, bytes, message] of table) {
    const { files, url, show } = await publishLog(t, service);
    show(ENTRIES);
    files.set(`log/${path}`, bytes);
    const { code, stdout } = await runHere(['audit', url]);
    t.equal(code, 1, path);
    t.match(stdout, message);
  }
});
