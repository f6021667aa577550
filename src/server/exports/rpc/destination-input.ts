import { create, getOption, type JsonObject, toJson } from '@bufbuild/protobuf';
import { FieldOptionsSchema } from '@bufbuild/protobuf/wkt';
import { members as membersOption } from '../../../../gen/attestation/options/v1/options_pb.js';
import {
  DestinationKindSchema,
  type ExportDestination,
  ExportDestinationSchema,
} from '../../../../gen/attestation/v1/exports_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import type { Problem } from '../../../protocol/problem.js';
import { invalidRequest } from '../../json/problems.js';

/** A stored destination: JSON of its public members, and of its secrets. */
type SplitDestination = { members: JsonObject; secrets: JsonObject };

/**
 * Checks that a destination has the members that its kind requires and no other kind's. Throws `request.invalid`. Rules of
 * single members were checked when the message was read.
 */
export function assertMembersOfKind(destination: ExportDestination): void {
  const kind = DestinationKindSchema.values.find(({ number }) => number === destination.kind);
  if (kind === undefined) throw new Error('the request was not validated');
  const { required, optional } = getOption(kind, membersOption) ?? { required: [], optional: [] };
  const name = enumName(DestinationKindSchema, destination.kind);
  const problems = ExportDestinationSchema.fields.flatMap((field): Problem[] => {
    const path = `/destination/${field.name}`;
    if (field.fieldKind !== 'scalar') return [];
    const isSet = destination[field.localName as keyof ExportDestination] !== undefined;
    if (!isSet)
      return required.includes(field.name) ? [{ path, message: `is required of kind ${name}` }] : [];
    if (required.includes(field.name) || optional.includes(field.name)) return [];
    const others = [...required, ...optional].join(', ');
    return [{ path, message: `is not a member of kind ${name}, which has ${others}` }];
  });
  if (problems.length > 0) throw invalidRequest(problems);
}

/** Leaves out the slash at the end of a prefix, with which it is the same one. */
export function trimPrefix(destination: ExportDestination): void {
  if (destination.prefix !== undefined) destination.prefix = destination.prefix.replace(/\/$/, '');
}

/** Separates the members that are marked as secret in the proto. */
export function splitSecrets(destination: ExportDestination): SplitDestination {
  const members = toJson(ExportDestinationSchema, create(ExportDestinationSchema, destination)) as JsonObject;
  const secrets: JsonObject = {};
  for (const field of ExportDestinationSchema.fields) {
    const value = members[field.jsonName];
    if (!isSecret(field.proto.options) || value === undefined) continue;
    secrets[field.jsonName] = value;
    delete members[field.jsonName];
  }
  return { members, secrets };
}

function isSecret(options: { debugRedact?: boolean } | undefined): boolean {
  return (options ?? create(FieldOptionsSchema)).debugRedact === true;
}
