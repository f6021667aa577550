/** What every store of objects must do as a destination of exports, faults of the network apart. */
import { Readable } from 'node:stream';
import type { Test } from 'tap';
import { bytesObject } from '../../../src/server/exports/destinations/bytes-object.js';
import {
  DestinationError,
  type OpenDestination,
} from '../../../src/server/exports/destinations/destination.js';
import type { HttpLimits } from '../../../src/server/exports/destinations/http-client.js';
import type { ExportObject } from '../../../src/server/exports/destinations/object-store.js';
import { raceWrites } from '../../../src/server/exports/destinations/race.js';
import { type FaultProxy, isMethod, slowly } from '../breaking/fault-proxy.js';
import { until } from '../until.js';
import { control, largeMd5, largeObject, textObject } from './export-objects.js';

/** A store behind a proxy. A store that takes parts gets some of `partBytes`, 512 KiB by default, of objects twice as large. */
export type StoreScene = {
  proxy: FaultProxy;
  open(options?: { limits?: HttpLimits; partBytes?: number }): Promise<OpenDestination>;
  /** What the store holds under a name, as its owner sees it. */
  look(name: string): Promise<StoredObject | undefined>;
  /** The MD5 of the bytes that it holds under a name, in base64. */
  md5(name: string): Promise<string>;
  /** What no text may contain. */
  secrets: readonly string[];
};

export type StoredObject = { revision: string; sha256: string; bytes: number; contentType: string };

const MIB = 1024 * 1024;
const NAME = 'copies/exp/live/2026/01/02/btc.jsonl';

/** Runs the cases, each with a scene of its own. */
export function testStore(t: Test, makeScene: (t: Test) => Promise<StoreScene>): void {
  t.test('writes an object, and only later revisions over it', async (t) => {
    const { open, look } = await makeScene(t);
    const destination = await open();
    const write = (object: ExportObject) => destination.write(object, control());
    t.same(await write(textObject(NAME, 'one', 1)), { outcome: 'written' });
    t.same(await write(textObject(NAME, 'three', 3)), { outcome: 'written' });
    t.same(await write(textObject(NAME, 'two', 2)), { outcome: 'superseded', revision: 3 });
    t.same(await write(textObject(NAME, 'tree', 3)), { outcome: 'superseded', revision: 3 });
    t.same(await write(textObject(NAME, 'three', 3)), { outcome: 'written' });
    const { sha256 } = textObject(NAME, 'three');
    const stored = { revision: '3', sha256: Buffer.from(sha256).toString('hex'), bytes: 5 };
    t.match(await look(NAME), { ...stored, contentType: 'application/x-ndjson' });
  });

  t.test('reads a part of the bytes of an object', async (t) => {
    const { open } = await makeScene(t);
    const { store } = await open();
    if (store === undefined) throw new Error('the destination has no store');
    const { signal } = control();
    t.equal(await store.readBytes(NAME, { start: 0, end: 10 }, signal), undefined);
    const content = Buffer.from(Array.from({ length: 1_000 }, (_, i) => (i * 7) % 256));
    const object = bytesObject({ name: NAME, content, contentType: 'application/gzip', revision: 1 });
    t.equal(await store.write(object, undefined, signal), true);
    for (const [start, end] of [
      [0, 1_000],
      [0, 2_000],
      [300, 301],
      [900, 5_000],
    ] as const)
      t.same(
        Buffer.from((await store.readBytes(NAME, { start, end }, signal)) ?? []),
        content.subarray(start, end),
        `${start} to ${end}`,
      );
  });

  t.test('reads the text of an object with the version that a write over it needs', async (t) => {
    const { open } = await makeScene(t);
    const { store } = await open();
    if (store === undefined) throw new Error('the destination has no store');
    const { signal } = control();
    t.equal(await store.readText(NAME, signal), undefined);
    t.equal(
      await store.write({ ...textObject(NAME, 'größer\n'), cacheControl: 'no-store' }, undefined, signal),
      true,
    );
    const found = await store.readText(NAME, signal);
    t.equal(found?.text, 'größer\n');
    t.equal((await store.read(NAME, signal))?.version, found?.version);
    t.equal(await store.write(textObject(NAME, 'two', 2), found, signal), true);
    t.equal(await store.write(textObject(NAME, 'three', 3), found, signal), false);
    t.equal((await store.readText(NAME, signal))?.text, 'two');
    await store.write(largeObject(NAME, 300 * 1024, 4), await store.read(NAME, signal), signal);
    await t.rejects(store.readText(NAME, signal), DestinationError);
  });

  t.test('of writers on the same condition one is stored', async (t) => {
    const { open, proxy } = await makeScene(t);
    const { store } = await open();
    if (store === undefined) throw new Error('the destination has no store');
    t.equal(await raceWrites(store, 'copies/race', control().signal), 10);
    proxy.ignoreConditions();
    await t.rejects(raceWrites(store, 'copies/another', control().signal), {
      message: /^conditional writes .* lose races: 8 of 8 writers wrote copies\/another/,
    });
  });

  t.test('a writer that does not hold the lease writes nothing', async (t) => {
    const { open, look } = await makeScene(t);
    const destination = await open();
    const outcome = await destination.write(
      textObject(NAME, 'one'),
      control({ isCurrent: async () => false }),
    );
    t.same(outcome, { outcome: 'superseded', revision: undefined });
    t.equal(await look(NAME), undefined);
  });

  t.test('a writer that stalls after it asked for the lease does not undo a redaction', async (t) => {
    const { open, look } = await makeScene(t);
    const destination = await open();
    await destination.write(textObject(NAME, 'with a name', 1), control());
    const isCurrent = async () => {
      await destination.write(textObject(NAME, 'redacted', 3), control());
      return true;
    };
    const outcome = await destination.write(textObject(NAME, 'with a name again', 2), control({ isCurrent }));
    t.same(outcome, { outcome: 'superseded', revision: 3 });
    t.match(await look(NAME), { revision: '3', bytes: 8 });
  });

  t.test('of writers that race the latest revision wins', async (t) => {
    const { open, look } = await makeScene(t);
    const destinations = await Promise.all([open(), open(), open()]);
    const outcomes = await Promise.all(
      destinations.map((destination, i) =>
        destination.write(textObject(NAME, `revision ${i}`, i + 1), control()),
      ),
    );
    t.same(outcomes[2], { outcome: 'written' });
    t.match(await look(NAME), { revision: '3' });
  });

  t.test('gives up when another writer is faster each time', async (t) => {
    const { open } = await makeScene(t);
    const destination = await open();
    let others = 0;
    const isCurrent = async () => {
      await destination.write(textObject(NAME, `other ${others}`, ++others), control());
      return true;
    };
    const writing = destination.write(textObject(NAME, 'mine', 99), control({ isCurrent }));
    await t.rejects(writing, { name: 'DestinationError', message: /another writer keeps changing/ });
    t.equal(others, 5);
  });

  t.test('writes a large object with little memory', async (t) => {
    const { open, look } = await makeScene(t);
    const destination = await open({ partBytes: 16 * MIB });
    const object = largeObject(NAME, 300 * MIB + 12_345);
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    let most = 0;
    const sampling = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss);
    }, 20);
    t.same(await destination.write(object, control()), { outcome: 'written' });
    clearInterval(sampling);
    t.match(await look(NAME), { revision: '1', bytes: object.bytes, contentType: 'application/gzip' });
    t.ok(most - before < 150 * MIB, `memory grew by ${Math.round((most - before) / MIB)} MiB`);
  });

  t.test('an aborted upload leaves nothing visible and nothing under way', async (t) => {
    const { proxy, open, look } = await makeScene(t);
    const destination = await open();
    const aborting = new AbortController();
    const begun = proxy.breakNext(isMethod('PUT'), slowly(16 * 1024, 20));
    const writing = destination.write(largeObject(NAME, 8 * MIB), control({ signal: aborting.signal }));
    await begun;
    aborting.abort(new Error('the worker stops'));
    await t.rejects(writing, { message: 'the worker stops' });
    await until('the proxy has no request', () => proxy.open() === 0);
    const { length } = proxy.requests;
    await destination.close();
    t.equal(proxy.requests.length, length);
    t.equal(await look(NAME), undefined);
  });

  t.test('an object that cannot be read fails with its own error', async (t) => {
    const { open, look } = await makeScene(t);
    const object = largeObject(NAME, 8 * MIB);
    let readings = 0;
    const read: ExportObject['read'] = (range) => {
      if (readings++ === 0) return object.read(range);
      return Readable.from(
        (async function* () {
          yield Buffer.alloc(100_000);
          throw new Error('the spool is gone');
        })(),
        { objectMode: false },
      );
    };
    const writing = (await open({ partBytes: 16 * MIB })).write({ ...object, read }, control());
    await t.rejects(writing, { name: 'Error', message: 'the spool is gone' });
    t.equal(await look(NAME), undefined);
  });

  t.test('the probe passes again and again', async (t) => {
    const { open } = await makeScene(t);
    const destination = await open();
    await destination.probe(control().signal);
    await destination.probe(control().signal);
  });

  t.test('the probe finds a store that ignores conditions', async (t) => {
    const { proxy, open } = await makeScene(t);
    proxy.ignoreConditions();
    const probing = (await open()).probe(control().signal);
    await t.rejects(
      probing,
      new DestinationError(
        'the store ignores conditions of writes (If-Match and the like); use another store',
      ),
    );
  });

  t.test('a larger object is stored byte by byte', async (t) => {
    const { open, md5 } = await makeScene(t);
    const bytes = 3 * MIB + 77;
    await (await open()).write(largeObject(NAME, bytes), control());
    t.equal(await md5(NAME), largeMd5(bytes));
  });
}
