import { create, fromBinary, getExtension, hasExtension, setExtension, toBinary } from '@bufbuild/protobuf';
import { base64Decode, base64Encode } from '@bufbuild/protobuf/wire';
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  FileDescriptorProtoSchema,
  type ServiceDescriptorProto,
} from '@bufbuild/protobuf/wkt';
import {
  ErrorRulesSchema,
  error,
  MethodRulesSchema,
  max_bytes as maxBytes,
  rules,
} from '../../../gen/attestation/options/v1/options_pb.js';

/** What a program reads of descriptors. */
export type Reads = 'messages' | 'calls' | 'roles';

/**
 * Generated code whose embedded descriptor lacks the options that clients do not read: rules, examples, REST paths,
 * documentation. They would be 4 of the 60 KB of a browser's calls (gzipped). What calls nothing
 * reads messages alone; the dashboard reads who may call a method, too.
 */
export function stripUnreadOptions(code: string, reads: Reads = 'calls'): string {
  return code.replace(/fileDesc\("([A-Za-z0-9+/=]+)"/, (_, text: string) => {
    const file = fromBinary(FileDescriptorProtoSchema, base64Decode(text));
    file.messageType.forEach(stripMessage);
    file.enumType.forEach(stripEnum);
    if (reads === 'messages') file.service = [];
    for (const service of file.service) stripService(service, reads === 'roles');
    return `fileDesc("${base64Encode(toBinary(FileDescriptorProtoSchema, file), 'std_raw')}"`;
  });
}

function stripMessage({ field, nestedType, enumType }: DescriptorProto): void {
  for (const { options } of field) {
    if (options?.$unknown === undefined) continue;
    options.$unknown = options.$unknown.filter(({ no }) => no === maxBytes.number);
  }
  nestedType.forEach(stripMessage);
  enumType.forEach(stripEnum);
}

function stripEnum({ value }: EnumDescriptorProto): void {
  for (const { options } of value) {
    if (options === undefined || !hasExtension(options, error)) continue;
    const { code, httpStatus, grpcCode } = getExtension(options, error);
    setExtension(options, error, create(ErrorRulesSchema, { code, httpStatus, grpcCode }));
  }
}

function stripService({ method }: ServiceDescriptorProto, hasRoles: boolean): void {
  for (const { options } of method) {
    if (options === undefined) continue;
    const { idempotentByKey, session, role } = getExtension(options, rules);
    options.$unknown = [];
    const kept = { idempotentByKey, ...(hasRoles && { session, role }) };
    setExtension(options, rules, create(MethodRulesSchema, kept));
  }
}
