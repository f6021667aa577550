/** The plugin that `buf generate` runs to write the type of enum values as texts: protoc-gen-es knows their numbers only. */
import { create, createFileRegistry } from '@bufbuild/protobuf';
import {
  CodeGeneratorResponse_Feature,
  CodeGeneratorResponseSchema,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';
import { runNodeJs } from '@bufbuild/protoplugin';
import { spellingsCode } from './spellings-code.js';

runNodeJs({
  name: 'spellings',
  version: 'v1',
  run({ protoFile, fileToGenerate }) {
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: protoFile }));
    const files = fileToGenerate.flatMap((name) => registry.getFile(name) ?? []);
    return create(CodeGeneratorResponseSchema, {
      supportedFeatures: BigInt(CodeGeneratorResponse_Feature.PROTO3_OPTIONAL),
      file: [{ name: 'spellings.ts', content: spellingsCode(files) }],
    });
  },
});
