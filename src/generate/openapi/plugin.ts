/** The plugin that `buf generate` runs to write `openapi.json`: it alone sees the comments of the protos. */
import { create } from '@bufbuild/protobuf';
import {
  CodeGeneratorResponse_Feature,
  CodeGeneratorResponseSchema,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';
import { runNodeJs } from '@bufbuild/protoplugin';
import { openApiDocument } from './document.js';

runNodeJs({
  name: 'openapi',
  version: 'v1',
  run({ protoFile, fileToGenerate }) {
    const set = create(FileDescriptorSetSchema, { file: protoFile });
    const document = openApiDocument(set, fileToGenerate);
    return create(CodeGeneratorResponseSchema, {
      supportedFeatures: BigInt(CodeGeneratorResponse_Feature.PROTO3_OPTIONAL),
      file: [{ name: 'openapi.json', content: `${JSON.stringify(document, undefined, 2)}\n` }],
    });
  },
});
