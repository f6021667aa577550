import { type DescField, getOption, hasOption, type JsonValue } from '@bufbuild/protobuf';
import { example as exampleOption, members } from '../../../gen/attestation/options/v1/options_pb.js';
import { findDefault, optionJson } from '../../server/json/defaults.js';

/** A field's example in its proto, as JSON; undefined if there is none. Throws, naming the field, if it is not JSON. */
export function findExample(field: DescField): JsonValue | undefined {
  return hasOption(field, exampleOption) ? optionJson(field, getOption(field, exampleOption)) : undefined;
}

/**
 * The default of a request's field that the document names, likewise. Clients fill it in, so that it names none of a member
 * that other kinds do not have, and none of a message.
 */
export function findNamedDefault(field: DescField): JsonValue | undefined {
  const isOfKind = field.parent.fields.some((sibling) =>
    sibling.enum?.values.some((value) => hasOption(value, members)),
  );
  return isOfKind || field.message !== undefined ? undefined : findDefault(field);
}
