import type { DescEnum, DescExtension, DescField, DescFile, DescMessage } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { Edition, FieldDescriptorProto_Label } from '@bufbuild/protobuf/wkt';

/**
 * Prints a proto2 or proto3 file descriptor back to source that the compiler reads to the same messages, enums and
 * extensions. Options are left out: the printed file serves only to resolve imports.
 */
export function printProto(file: DescFile): string {
  const extensions = file.extensions.map((e) => `extend .${e.extendee.typeName} {\n${printField(e)}}\n`);
  return [
    `syntax = "${file.edition === Edition.EDITION_PROTO2 ? 'proto2' : 'proto3'}";`,
    `package ${file.proto.package};`,
    ...file.proto.dependency.map((path) => `import "${path}";`),
    ...extensions,
    ...file.enums.map(printEnum),
    ...file.messages.map(printMessage),
  ].join('\n');
}

function printMessage(message: DescMessage): string {
  const ranges = message.proto.extensionRange.map(
    (r) => `extensions ${r.start} to ${r.end > 2 ** 28 ? 'max' : r.end - 1};\n`,
  );
  const oneofs = message.oneofs.map((o) => `oneof ${o.name} {\n${o.fields.map(printField).join('')}}\n`);
  const body = [
    ...message.nestedEnums.map(printEnum),
    ...message.nestedMessages.map(printMessage),
    ...message.fields.filter((f) => f.oneof === undefined).map(printField),
    ...oneofs,
    ...ranges,
  ];
  return `message ${message.name} {\n${body.join('')}}\n`;
}

function printEnum(desc: DescEnum): string {
  return `enum ${desc.name} {\n${desc.values.map((v) => `${v.name} = ${v.number};\n`).join('')}}\n`;
}

function printField(field: DescField | DescExtension): string {
  return `${label(field)}${typeName(field)} ${field.name} = ${field.number};\n`;
}

function label(field: DescField | DescExtension): string {
  if (field.fieldKind === 'map' || (field.kind === 'field' && field.oneof !== undefined)) return '';
  if (field.proto.label === FieldDescriptorProto_Label.REPEATED) return 'repeated ';
  if (field.proto.label === FieldDescriptorProto_Label.REQUIRED) return 'required ';
  const proto2 =
    (field.kind === 'extension' ? field.file : field.parent.file).edition === Edition.EDITION_PROTO2;
  return proto2 || field.proto.proto3Optional ? 'optional ' : '';
}

function typeName(field: DescField | DescExtension): string {
  if (field.message !== undefined && field.fieldKind !== 'map') return `.${field.message.typeName}`;
  if (field.enum !== undefined && field.fieldKind !== 'map') return `.${field.enum.typeName}`;
  if (field.fieldKind !== 'map') return scalarName(field.scalar);
  const value = field.message ?? field.enum;
  return `map<${scalarName(field.mapKey)}, ${value ? `.${value.typeName}` : scalarName(field.scalar)}>`;
}

function scalarName(scalar: ScalarType | undefined): string {
  if (scalar === undefined) throw new Error('field without a type');
  return ScalarType[scalar].toLowerCase();
}
