import { create, type MessageInitShape } from '@bufbuild/protobuf';
import t from 'tap';
import { ApiError } from '../../../../src/server/core/errors.js';
import { compileMessageCheck } from '../../../../src/server/http/call/validate.js';
import { EverythingSchema } from '../../../gen/library/v1/library_pb.js';

const check = compileMessageCheck(EverythingSchema);

/** What the check complains of, as `path: message`. */
function problemsOf(init: MessageInitShape<typeof EverythingSchema>): string[] {
  try {
    check(create(EverythingSchema, init));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { errors } = error.details as { errors: { path: string; message: string }[] };
    return errors.map(({ path, message }) => `${path}: ${message}`);
  }
  return [];
}

const TEXT = 'must not hold U+0000 or a lone surrogate';
const TIME = 'must be a time from the year 1 to 9999';

t.test('a binary message is rejected for the same problems as JSON', async (t) => {
  t.same(problemsOf({}), []);
  const fine = { seconds: 253_402_300_799n, nanos: 999_999_999 };
  t.same(
    problemsOf({ stringField: 'é\u{1f600}', timestamp: fine, struct: { a: [1.5, null, { b: '' }] } }),
    [],
  );
  const cases: [MessageInitShape<typeof EverythingSchema>, string][] = [
    [{ stringField: 'a\0b' }, `/string_field: ${TEXT}`],
    [{ stringField: '\ud800' }, `/string_field: ${TEXT}`],
    [{ stringList: ['fine', '\0'] }, `/string_list/1: ${TEXT}`],
    [{ stringMap: { fine: '\0' } }, `/string_map/fine: ${TEXT}`],
    [{ stringMap: { '\0': 'fine' } }, `/string_map/\0: ${TEXT}`],
    [{ recursive: { recursive: { stringField: '\0' } } }, `/recursive/recursive/string_field: ${TEXT}`],
    [{ stringWrapper: '\0' }, `/string_wrapper: ${TEXT}`],
    [{ struct: { a: { b: ['\0'] } } }, `/struct/a/b/0: ${TEXT}`],
    [{ struct: { '\0': 1 } }, `/struct/\0: ${TEXT}`],
    [{ structMap: { a: { b: '\0' } } }, `/struct_map/a/b: ${TEXT}`],
    [{ choice: { case: 'stringChoice', value: '\0' } }, `/string_choice: ${TEXT}`],
    [
      {
        value: {
          kind: {
            case: 'structValue',
            value: { fields: { a: { kind: { case: 'stringValue', value: '\0' } } } },
          },
        },
      },
      `/value/struct_value/fields/a/string_value: ${TEXT}`,
    ],
    [{ struct: { a: Number.NaN } }, '/struct/a: is out of range'],
    [{ struct: { a: Number.NEGATIVE_INFINITY } }, '/struct/a: is out of range'],
    [{ timestamp: { seconds: 253_402_300_800n } }, `/timestamp: ${TIME}`],
    [{ timestamp: { seconds: -62_135_596_801n } }, `/timestamp: ${TIME}`],
    [{ timestamp: { seconds: 2n ** 62n } }, `/timestamp: ${TIME}`],
    [{ timestamp: { nanos: -1 } }, `/timestamp: ${TIME}`],
    [{ timestamp: { nanos: 1_000_000_000 } }, `/timestamp: ${TIME}`],
  ];
  for (const [init, problem] of cases) t.same(problemsOf(init), [problem], JSON.stringify(problem));
  t.equal(problemsOf({ stringField: '\0', struct: { a: '\0', b: '\0' } }).length, 3, 'all are listed');
});
