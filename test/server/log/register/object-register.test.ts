/** A bucket as the register: compare-and-swap on the version that was read, and an error for all that is no entry. */
import t, { type Test } from 'tap';
import type { NewRegisterEntry, Register } from '../../../../src/server/log/register/register.js';
import { openRegister } from '../../../../src/server/witnessing/register/open-register.js';
import type { Faults } from '../../../support/exports/s3/faults.js';
import { BUCKET, bucketAt, objectOf, openBucket, startStore } from '../../../support/exports/s3/fixture.js';
import { growLog, type History } from '../../../support/witnesses/grown-log.js';

const log = growLog('live.log.example.com', 40);
const { origin } = log;
const KEY = `own/${origin}/checkpoint`;
const entry = (size: number, history: History = log): NewRegisterEntry => ({
  origin,
  size,
  rootHash: history.root(size),
  keyHash: undefined,
  note: history.note(size),
  proveConsistency: async (fromSize) => history.prove(fromSize, size),
});

async function open(t: Test) {
  const server = await startStore(t);
  return { server, register: await openRegister({ storage: bucketAt(server.url) }) };
}

const sizeOf = async (register: Register) => (await register.read(origin))?.size;
/** What happens to the first write of the entry. */
const once = (fault: ReturnType<Faults>): Faults => {
  let left = 1;
  return ({ operation, key }) => (operation === 'PutObject' && key === KEY && left-- > 0 ? fault : undefined);
};

t.test('an entry is the signed checkpoint, replaced only by a writer that has read it', async (t) => {
  const { server, register } = await open(t);
  t.equal(await register.read(origin), undefined);
  t.equal(await register.replace(entry(3), entry(7)), false, 'nothing was there');
  t.equal(await register.replace(undefined, entry(7)), true);
  t.match(await register.read(origin), { size: 7, rootHash: log.root(7), note: log.note(7) });
  t.equal(await register.replace(undefined, entry(9)), false);
  t.equal(await register.replace(entry(6), entry(9)), false);
  t.equal(await register.replace(entry(7), entry(9)), true);
  t.equal(await register.replace(entry(7), entry(9)), true, 'it is there');
  t.equal(await register.replace(entry(7), entry(11)), false);
  t.equal(await sizeOf(register), 9);
  t.match(server.requests.at(-1)?.key, KEY);
  t.match(register.location(origin), /^s3:\/\/attestations\/own\/live\.log\.example\.com\/checkpoint$/);
});

t.test('of writers at once one replaces the entry', async (t) => {
  const { server } = await open(t);
  const registers = await Promise.all(
    Array.from({ length: 6 }, () => openRegister({ storage: bucketAt(server.url) })),
  );
  let standing: NewRegisterEntry | undefined;
  for (let round = 0; round < 5; round++) {
    const sizes = registers.map((_, i) => round * 6 + i + 1);
    const nexts = sizes.map((size) => entry(size));
    const replaced = await Promise.all(registers.map((register, i) => register.replace(standing, nexts[i]!)));
    const winners = nexts.filter((_, i) => replaced[i]);
    t.equal(winners.length, 1);
    [standing] = winners;
    t.equal(await sizeOf(registers[0]!), standing?.size);
  }
});

t.test('a write whose answer is lost is found by the next', async (t) => {
  const { server, register } = await open(t);
  await register.replace(undefined, entry(3));
  server.fail(once({ kind: 'cut-answer' }));
  await t.rejects(register.replace(entry(3), entry(7)), { name: 'RegisterError' });
  t.equal(await register.replace(entry(3), entry(7)), true);
  t.equal(await sizeOf(register), 7);
  t.equal(server.requests.filter(({ method, key }) => method === 'PUT' && key === KEY).length, 2);
});

t.test('a write that is overtaken changes nothing', async (t) => {
  const { server, register } = await open(t);
  await register.replace(undefined, entry(3));
  let release = () => {};
  server.fail(
    once({
      kind: 'hold',
      until: new Promise<void>((done) => {
        release = done;
      }),
    }),
  );
  const held = register.replace(entry(3), entry(7));
  const other = await openRegister({ storage: bucketAt(server.url) });
  t.equal(await other.replace(entry(3), entry(9)), true);
  release();
  t.equal(await held, false);
  t.equal(await sizeOf(register), 9);
});

t.test('what is no entry of this log is an error, not an absence', async (t) => {
  const { server, register } = await open(t);
  const { store } = await openBucket(t, server);
  const signal = AbortSignal.timeout(20_000);
  const contents: [string, string | Uint8Array, RegExp][] = [
    ['nothing', '', /a note has no empty line/],
    ['a page', '<html></html>\n', /a note has no empty line/],
    ['bytes', new Uint8Array([0xff, 0xfe, 0x00]), /./],
    ['half a note', log.note(7).slice(0, -40), /./],
    ['another log', growLog('test.log.example.com', 9).note(9), /is of another log/],
    ['too much', 'x'.repeat(300_000), /too large/],
  ];
  for (const [what, content, expected] of contents) {
    await store?.write(objectOf(content, { name: KEY }), await store.read(KEY, signal), signal);
    const runs: (() => Promise<unknown>)[] = [
      () => register.read(origin),
      () => register.replace(undefined, entry(9)),
    ];
    for (const run of runs) {
      await t.rejects(run(), { name: 'RegisterError', message: expected }, what);
      await t.rejects(run(), { message: /^the checkpoint register s3:\/\/attestations\/own\/live/ }, what);
    }
  }
});

t.test('a store that is away, slow or forbids is an error without secrets', async (t) => {
  const { server, register } = await open(t);
  await register.replace(undefined, entry(3));
  const faults: [ReturnType<Faults>, RegExp][] = [
    [{ kind: 'refuse', code: 'AccessDenied' }, /s3:GetObject/],
    [{ kind: 'refuse', code: 'NoSuchBucket' }, /./],
    [{ kind: 'hang' }, /no answer within 2000 ms/],
  ];
  for (const [fault, expected] of faults) {
    server.fail(() => fault);
    await t.rejects(register.read(origin), { name: 'RegisterError', message: expected });
  }
  server.fail(() => undefined);
  await server.goAway();
  const runs: (() => Promise<unknown>)[] = [
    () => register.read(origin),
    () => register.replace(entry(3), entry(9)),
  ];
  for (const run of runs) await t.rejects(run(), { name: 'RegisterError', message: /^(?!.*owner\+secret)/ });
  await server.comeBack();
  t.equal(await sizeOf(register), 3);
});

t.test('a store that ignores conditions is not used', async (t) => {
  const { server, register } = await open(t);
  const stored: ReturnType<Faults> = {
    kind: 'answer',
    with: (response) => response.writeHead(200, { etag: '"a"' }).end(),
  };
  let writes = 0;
  server.fail(({ operation, key }) =>
    operation === 'PutObject' && key.startsWith('own/probe/') && ++writes > 2 ? stored : undefined,
  );
  await t.rejects(register.replace(undefined, entry(3)), { message: /ignores conditions of writes/ });
  t.notOk(server.buckets.get(BUCKET)?.objects.has(KEY));
});
