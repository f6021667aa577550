import { type DescExtension, fromBinary, toBinary } from '@bufbuild/protobuf';
import { base64Decode, base64Encode } from '@bufbuild/protobuf/wire';
import { type DescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { field as fieldRules } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { example } from '../../../gen/attestation/options/v1/options_pb.js';

/** Options of fields that only servers and documents read: 4.5 of the 60 KB of a browser's calls (gzipped). */
const UNREAD: readonly DescExtension[] = [fieldRules, example];

/** Generated code whose embedded descriptor lacks the options of fields that clients do not read. */
export function stripUnreadOptions(code: string): string {
  return code.replace(/fileDesc\("([A-Za-z0-9+/=]+)"/, (_, text: string) => {
    const file = fromBinary(FileDescriptorProtoSchema, base64Decode(text));
    file.messageType.forEach(stripMessage);
    return `fileDesc("${base64Encode(toBinary(FileDescriptorProtoSchema, file), 'std_raw')}"`;
  });
}

function stripMessage({ field, nestedType }: DescriptorProto): void {
  for (const { options } of field) {
    if (options?.$unknown === undefined) continue;
    options.$unknown = options.$unknown.filter(({ no }) => UNREAD.every(({ number }) => number !== no));
  }
  nestedType.forEach(stripMessage);
}
