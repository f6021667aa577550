import { isDeepStrictEqual } from 'node:util';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { SubmissionSchema } from '../../../gen/attestation/v1/attestations_pb.js';
import { compileReader, compileSplicingWriter, compileWriter } from '../../../src/server/json/codec.js';
import { parseJson } from '../../../src/server/json/strict-json.js';
import { BookSchema, EverythingSchema, Genre } from '../../gen/library/v1/library_pb.js';
import {
  DeepSchema,
  HasAnySchema,
  HasFieldMaskSchema,
  HasUnspelledEnumSchema,
} from '../../gen/library/v1/refused_pb.js';
import { draws, randomMessage } from './random-message.js';

const write = compileWriter(EverythingSchema);
const read = compileReader(EverythingSchema);

t.test('every message that is written reads back as it was', async (t) => {
  const draw = draws(20_251);
  for (let round = 0; round < 200; round++) {
    const message = randomMessage(EverythingSchema, draw) as never;
    const text = write(message);
    const back = read(parseJson(Buffer.from(text), { maxDepth: 100 }));
    if (!isDeepStrictEqual(back, message)) return t.same(back, message, text);
    const binary = fromBinary(EverythingSchema, toBinary(EverythingSchema, back));
    if (write(binary) !== text) return t.equal(write(binary), text);
  }
  t.pass('200 random messages');
});

t.test('an empty message shows its lists, maps and plain scalars, in the order of the proto', async (t) => {
  t.equal(
    compileWriter(BookSchema)(create(BookSchema)),
    '{"id":"","title":"","tags":[],"copies":0}',
    'an enum value without a name and unset members are left out',
  );
  const everything = JSON.parse(write(create(EverythingSchema))) as Record<string, unknown>;
  t.same(everything.string_map, {});
  t.same(everything.message_list, []);
  t.equal(everything.bytes_field, '');
  t.notOk(Object.keys(everything).some((name) => /^optional_|_choice$|wrapper$|^timestamp$/.test(name)));
});

t.test('values have their documented JSON', async (t) => {
  const at = create(TimestampSchema, { seconds: 1_700_000_000n, nanos: 123_999_999 });
  const written = (init: Parameters<typeof create<typeof EverythingSchema>>[1]) =>
    JSON.parse(write(create(EverythingSchema, init))) as Record<string, unknown>;
  t.equal(
    written({ timestamp: at }).timestamp,
    '2023-11-14T22:13:20.123Z',
    'finer than milliseconds is cut off',
  );
  t.equal(written({ timestamp: { seconds: -1n, nanos: 999_999_999 } }).timestamp, '1969-12-31T23:59:59.999Z');
  t.equal(written({ timestamp: { seconds: -62_135_596_800n } }).timestamp, '0001-01-01T00:00:00.000Z');
  t.equal(written({ duration: { seconds: 3600n } }).duration, '3600s');
  t.equal(written({ duration: { nanos: -500_000_000 } }).duration, '-0.500s');
  t.equal(written({ duration: { seconds: 1n, nanos: 1_000 } }).duration, '1.000001s');
  t.equal(written({ duration: { seconds: 1n, nanos: 1 } }).duration, '1.000000001s');
  t.equal(written({ genreField: Genre.FIELD_GUIDE }).genre_field, 'field.guide');
  t.same(written({ genreList: [Genre.NOVEL, Genre.SECRET, 99 as Genre] }).genre_list, ['novel']);
  t.notOk('optional_genre' in written({ optionalGenre: Genre.SECRET }));
  t.same(written({ int64Map: { '5': Genre.NOVEL, '6': Genre.SECRET } }).int64_map, { '5': 'novel' });
  t.equal(written({ bytesField: new Uint8Array([251, 255]) }).bytes_field, '+/8=');
  t.equal(written({ doubleField: Number.NaN }).double_field, 'NaN');
  t.equal(written({ int64Field: BigInt(Number.MAX_SAFE_INTEGER) }).int64_field, Number.MAX_SAFE_INTEGER);
  t.throws(() => write(create(EverythingSchema, { int64Field: 2n ** 53n })), RangeError);
  t.throws(() => write(create(EverythingSchema, { timestamp: { seconds: 2n ** 40n } })), RangeError);
  const struct = JSON.parse('{"b":1e21,"a":{"z":[],"__proto__":"own"},"\\u20ac":"\\u2028"}');
  t.match(
    write(create(EverythingSchema, { struct })),
    '"struct":{"a":{"__proto__":"own","z":[]},"b":1e+21,"€":"\u2028"}',
    'Structs are canonical JSON',
  );
});

t.test('fields of the API have their documented JSON', async (t) => {
  const text = compileWriter(SubmissionSchema)(
    create(SubmissionSchema, { id: 'sub_1', status: 1, logIndex: 7n, environment: 2, metadataState: 1 }),
  );
  t.equal(
    text,
    '{"id":"sub_1","leaf_sha256":"","status":"queued","warnings":[],"environment":"test","log_index":7,' +
      '"metadata_state":"valid","metadata_errors":[]}',
  );
});

t.test('JSON texts of fields are copied in their places, whether the fields are set or not', async (t) => {
  const message = create(BookSchema, { id: 'b1', title: 'Emma', tags: ['a'], copies: 2n });
  const splice = compileSplicingWriter(BookSchema);
  t.equal(splice(message, {}), compileWriter(BookSchema)(message));
  t.equal(
    splice(message, { title: '{ "as":"it is" }', extra: '{"b":1,"a":2}' }),
    compileWriter(BookSchema)({ ...message, extra: { stand: 'in' } })
      .replace('"Emma"', '{ "as":"it is" }')
      .replace('{"stand":"in"}', '{"b":1,"a":2}'),
  );
});

t.test('types without JSON are rejected when the codec is compiled', async (t) => {
  t.throws(() => compileWriter(HasAnySchema), /HasAny\.detail: google\.protobuf\.Any has no JSON/);
  t.throws(
    () => compileReader(DeepSchema),
    /Deep\.inner: library\.v1\.HasAny\.detail: google\.protobuf\.Any/,
  );
  t.throws(() => compileWriter(HasFieldMaskSchema), /HasFieldMask\.masks: google\.protobuf\.FieldMask/);
  t.throws(() => compileReader(HasUnspelledEnumSchema), /no value of library\.v1\.Unspelled has a name/);
  t.throws(() => compileWriter(TimestampSchema), /has JSON as a field only/);
});
