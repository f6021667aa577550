import { create, getOption, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import t from 'tap';
import { rules } from '../../../../gen/attestation/options/v1/options_pb.js';
import {
  AttestationService,
  CreateAttestationRequestSchema,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { InfoService } from '../../../../gen/attestation/v1/service_pb.js';
import { findBound } from '../../../../src/server/json/bound.js';
import { startApp } from '../../../support/app.js';
import { publicMethods, rpcName } from '../../../support/calling/rpcs.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { creation } from '../samples.js';
import { openSender, sendHostileBodies, sendHostileMessages } from './hostile-calls.js';

const app = await startApp(t);
const owner = await newKey(app);
const surfaces = app.surfaces();
const methods = await publicMethods();
const MIB = 1024 * 1024;

const send = openSender(t, app);

async function assertAlive(t: Tap): Promise<void> {
  for (const { name, call } of surfaces) {
    t.equal((await call(InfoService.method.getHealth, {}, owner.key)).code, 'ok', `${name} is served`);
  }
}
type Tap = Pick<typeof t, 'equal'>;

for (const method of methods) {
  t.test(`${rpcName(method)} answers any gRPC message with a documented error or success`, async (t) => {
    t.same(await sendHostileMessages(send, method, owner.key), []);
    await assertAlive(t);
  });

  t.test(`${rpcName(method)} answers any Connect body with a documented error or success`, async (t) => {
    t.same(await sendHostileBodies(app, method, owner.key), []);
    await assertAlive(t);
  });
}

t.test('a message larger than its RPC can need is rejected on gRPC and Connect', async (t) => {
  const { createAttestation } = AttestationService.method;
  const padded = (bytes: number) =>
    toBinary(
      CreateAttestationRequestSchema,
      create(
        CreateAttestationRequestSchema,
        creation('ab'.repeat(32), { schema: 'purl', fill: 'x'.repeat(bytes) }),
      ),
    );
  t.equal(await send(createAttestation, padded(300 * 1_024), owner.key), 'request.invalid', 'its metadata');
  t.equal(await send(createAttestation, padded(MIB + 1_024), owner.key), 'request.too_large');
  for (const method of methods) {
    const maxBytes = findBound(method.input)?.maxBytes ?? 0;
    const isBatch = getOption(method, rules).batchOf !== '';
    t.ok(
      maxBytes > 0 && maxBytes < (isBatch ? 4 * MIB : 0.75 * MIB),
      `${rpcName(method)} has a bound: ${maxBytes}`,
    );
    const large = new BinaryWriter()
      .tag(1_000, WireType.LengthDelimited)
      .bytes(Buffer.alloc(maxBytes))
      .finish();
    t.equal(await send(method, large, owner.key), 'request.too_large', rpcName(method));
    const path = `/${method.parent.typeName}/${method.name}`;
    const answer = await app.rest(path, { apiKey: owner.key, body: `{"x":"${'x'.repeat(maxBytes)}"}` });
    t.match(answer.json, { code: 'resource_exhausted', details: [{ debug: { code: 'request.too_large' } }] });
  }
  await assertAlive(t);
});

t.test(
  'numbers that are no JSON, and values that are none, are rejected or dropped in metadata',
  async (t) => {
    const { createAttestation } = AttestationService.method;
    const sha = new BinaryWriter().tag(1, WireType.LengthDelimited).string('ab'.repeat(32)).finish();
    const withValue = (value: Uint8Array) => {
      const entry = new BinaryWriter().tag(1, WireType.LengthDelimited).string('a');
      const map = entry.tag(2, WireType.LengthDelimited).bytes(value).finish();
      const struct = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(map).finish();
      const message = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(sha);
      return message.tag(2, WireType.LengthDelimited).bytes(struct).finish();
    };
    for (const n of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const value = new BinaryWriter().tag(2, WireType.Bit64).double(n).finish();
      t.equal(await send(createAttestation, withValue(value), owner.key), 'request.invalid', String(n));
    }
    t.equal(
      await send(createAttestation, withValue(new Uint8Array()), owner.key),
      'request.invalid',
      'no schema',
    );
  },
);

t.test('no hostile request stored anything, and no secret was logged or returned', async (t) => {
  t.same(await app.pool`SELECT id FROM submission`, []);
  assertNoLeaks(t, app.recorder);
});
