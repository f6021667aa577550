/** Metadata as callers give it: what JSON does not have is an error before any call, and nothing is changed on the way. */
import type { JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { AttestationService, type BatchItem, ItemOutcome } from '../../gen/attestation/v1/attestations_pb.js';
import { verifyBundle } from '../../src/client/client.js';
import { jcs } from '../../src/proof/bytes/jcs.js';
import { serveRpc } from '../support/servers/rpc-server.js';
import { all, clientOf, METADATA, REQUEST, SHA256 } from './clients.js';

/** A service that takes everything, and what metadata it got. */
async function serve(t: Test) {
  const got: (JsonObject | undefined)[] = [];
  const { baseUrl, requests } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      createAttestation: ({ metadata }) => {
        got.push(metadata);
        return {};
      },
      updateAttestation: ({ metadata }) => {
        got.push(metadata);
        return {};
      },
      batchCreateAttestations: ({ items }) => {
        got.push(...items.map(({ metadata }) => metadata));
        return { results: items.map(() => ({ outcome: ItemOutcome.CREATED, submission: {} })) };
      },
    });
  });
  const { attestations } = clientOf(baseUrl).client;
  /** The ways to send metadata. */
  const ways: Record<string, (metadata: never) => Promise<unknown>> = {
    create: (metadata) => attestations.create({ ...REQUEST, metadata }),
    submitFile: (metadata) => attestations.submitFile(new Uint8Array([1]), { metadata }),
    submitMany: (metadata) => all(attestations.submitMany([{ ...REQUEST, metadata }])),
    update: (metadata) => attestations.update({ id: 'sub_1', metadata }),
  };
  return { got, requests, ways, attestations };
}

class Version {
  constructor(readonly major: number) {}
  toJSON() {
    return `v${this.major}`;
  }
}

const cyclic: Record<string, unknown> = { deep: {} };
(cyclic.deep as Record<string, unknown>).self = cyclic;
const deep = JSON.parse(`${'{"a":'.repeat(100)}1${'}'.repeat(100)}`);
const beside = Object.assign([1], { more: 2 });

const WRONG: [what: string, value: unknown, at: string, problem: RegExp][] = [
  ['BigInt', 12345678901234567890n, '', /is a BigInt: give it as a string$/],
  ['undefined', undefined, '', /is undefined: leave the member out, or give null$/],
  ['function', () => 1, '', /is a function/],
  ['symbol', Symbol('s'), '', /is a symbol/],
  ['Date', new Date(0), '', /is an instance of Date: give it as a string, as toISOString returns it$/],
  ['Date that is none', new Date(Number.NaN), '', /is an instance of Date/],
  [
    'Map',
    new Map([['a', 1]]),
    '',
    /is an instance of Map: give an object, as Object\.fromEntries returns it$/,
  ],
  ['Set', new Set([1]), '', /is an instance of Set: give an array$/],
  ['bytes', new Uint8Array(2), '', /is an instance of Uint8Array/],
  ['Buffer', Buffer.from('a'), '', /is an instance of Buffer/],
  ['regular expression', /a/, '', /is an instance of RegExp/],
  ['URL', new URL('https://example.com'), '', /is an instance of URL/],
  ['Promise', Promise.resolve(1), '', /is an instance of Promise/],
  ['Error', new Error('e'), '', /is an instance of Error/],
  ['instance of a class', new Version(1), '', /is an instance of Version: give a plain object$/],
  ['object with a prototype of its own', Object.create({ a: 1 }), '', /give a plain object$/],
  ['boxed string', Object('a'), '', /is an instance of String/],
  ['toJSON', { toJSON: () => 'x' }, '/toJSON', /is a function/],
  ['NaN', Number.NaN, '', /is NaN/],
  ['infinity', [1, Number.NEGATIVE_INFINITY], '/1', /is -Infinity/],
  ['lone surrogate', { a: ['\ud800x'] }, '/a/0', /has a lone surrogate/],
  ['lone surrogate in a name', { 'x\udc00': 1 }, '/x\ufffd', /has a lone surrogate/],
  ['named by a symbol', { [Symbol('s')]: 1 }, '', /has a member that is named by a symbol$/],
  // biome-ignore lint/suspicious/noSparseArray: what is tested
  ['hole', [1, , 3], '/1', /is a hole in the array/],
  ['items and members', beside, '', /has members beside its items$/],
  ['cycle', cyclic, '/deep/self', /contains itself$/],
  ['depth', deep, '/a'.repeat(63), /is more than 64 levels deep$/],
  ['deep inside', { 'a/b': [{ '~': [null, { c: 1n }] }] }, '/a~1b/0/~0/1/c', /is a BigInt/],
];

t.test(
  'metadata that JSON does not have is a TypeError with its JSON pointer, before any call',
  async (t) => {
    const { ways, requests } = await serve(t);
    for (const [what, value, at, problem] of WRONG) {
      for (const [way, send] of Object.entries(ways)) {
        const place = `${way === 'submitMany' ? '/0' : ''}/metadata/x${at}`;
        const error = await send({ ...METADATA, x: value } as never).then(
          () => new Error('was sent'),
          (thrown: Error) => thrown,
        );
        t.match(error, { name: 'TypeError', message: problem }, `${way}: ${what}`);
        t.equal(error.message.slice(0, place.length + 1), `${place} `, `${way}: ${what}`);
      }
    }
    for (const value of [null, 'text', [METADATA], new Map(Object.entries(METADATA)), new Date(0), 7n]) {
      for (const [way, send] of Object.entries(ways)) {
        await t.rejects(send(value as never), { name: 'TypeError', message: /\/metadata / }, way);
      }
    }
    t.equal(requests.length, 0);
  },
);

t.test('metadata that is JSON is sent unchanged', async (t) => {
  const { ways, got } = await serve(t);
  const shared = { a: 1 };
  const values: unknown[] = [
    null,
    false,
    '',
    '\u{1f600}\u2028\u0000"\\',
    0,
    1.5e300,
    5e-324,
    2 ** 53 + 2,
    [],
    {},
    [[], [null]],
    { shared, again: [shared, shared] },
    Object.create(null, { bare: { value: 1, enumerable: true }, hidden: { value: () => 1 } }),
    Object.freeze({ a: Object.freeze([1]) }),
    { undefined: 1, NaN: 2, '': 3, $typeName: 'google.protobuf.Struct', fields: {} },
    JSON.parse('{"__proto__":{"a":1},"constructor":1,"toString":2,"toJSON":"x","hasOwnProperty":[]}'),
  ];
  for (const [i, value] of values.entries()) {
    for (const [way, send] of Object.entries(ways)) {
      await send({ ...METADATA, x: value } as never);
      t.equal(jcs(got.pop()), jcs({ ...METADATA, x: value }), `${way}: value ${i}`);
    }
  }
  await ways.create?.({ ...METADATA, x: -0 } as never);
  t.equal(jcs(got.pop()), jcs({ ...METADATA, x: 0 }), 'canonical JSON has one zero');
});

t.test('metadata that changes after the call is sent as it was', async (t) => {
  const { got, attestations } = await serve(t);
  const metadata = { ...METADATA, list: [1] };
  const created = attestations.create({ ...REQUEST, metadata });
  metadata.list.push(2);
  Object.assign(metadata, { purl: 'pkg:generic/other' });
  await created;
  t.same(got, [{ ...METADATA, list: [1] }]);
});

t.test('of many, a wrong item is named, and those before it are submitted', async (t) => {
  const { got, attestations } = await serve(t);
  const item = (n: unknown) =>
    ({ artifact: { sha256: SHA256 }, metadata: { ...METADATA, n } }) as unknown as BatchItem;
  await t.rejects(all(attestations.submitMany([item(0), item(1n)])), {
    name: 'TypeError',
    message: /^\/1\/metadata\/n is a BigInt/,
  });
  t.equal(got.length, 0, 'of an array, all are checked before any call');
  const places: number[] = [];
  const submitting = async () => {
    const items = [item(0), item(1), item(new Date()), item(3)].values();
    for await (const { index, error } of attestations.submitMany(items)) if (!error) places.push(index);
  };
  await t.rejects(submitting(), { name: 'TypeError', message: /^\/2\/metadata\/n is an instance of Date/ });
  t.same(places, [0, 1]);
  t.equal(got.length, 2);
  for (const wrong of [
    undefined,
    null,
    'sub',
    [],
    { ...item(0), idempotencyKey: '' },
    { ...item(0), note: 1 },
  ]) {
    await t.rejects(all(attestations.submitMany([wrong as never])), { message: /^\/0/ });
  }
  t.equal(got.length, 2);
});

t.test('metadata to verify is checked in the same way', async (t) => {
  const options = { trustRoots: {}, now: new Date(), metadataSalt: '00'.repeat(32) };
  for (const [what, value, at, problem] of WRONG) {
    const verifying = verifyBundle({}, { ...options, metadata: { x: value } });
    const error = await verifying.then(
      () => new Error('was verified'),
      (thrown: Error) => thrown,
    );
    t.match(error, { name: 'TypeError', message: problem }, what);
    t.ok(error.message.startsWith(`/metadata/x${at} `), what);
  }
});
