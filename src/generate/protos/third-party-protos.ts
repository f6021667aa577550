import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { file_buf_validate_validate } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { filesIn } from '../files-in.js';
import { printProto } from './print-proto.js';

/** Third-party protos in npm packages: by import path, the package's module and the relative path. */
const FILES: Readonly<Record<string, readonly [module: string, path: string]>> = {
  'google/api/annotations.proto': ['google-gax', '../protos/google/api/annotations.proto'],
  'google/api/http.proto': ['google-gax', '../protos/google/api/http.proto'],
  'google/api/httpbody.proto': ['google-gax', '../protos/google/api/httpbody.proto'],
  'google/rpc/error_details.proto': ['google-gax', '../protos/google/rpc/error_details.proto'],
  'grpc/health/v1/health.proto': ['grpc-health-check', '../../proto/health/v1/health.proto'],
  'grpc/reflection/v1/reflection.proto': ['@grpc/reflection', '../proto/grpc/reflection/v1/reflection.proto'],
  'grpc/reflection/v1alpha/reflection.proto': [
    '@grpc/reflection',
    '../proto/grpc/reflection/v1alpha/reflection.proto',
  ],
};

/**
 * Writes the third-party protos that ours import or that are served beside them into `<root>/.protos`, from npm
 * packages only: most as files, `buf/validate` printed from the descriptor that `@bufbuild/protovalidate` carries. A
 * folder that holds just these is left alone, so that another process can go on reading it.
 */
export function writeThirdPartyProtos(root: string): void {
  const out = join(root, '.protos');
  const wanted = readThirdPartyProtos();
  const found = filesIn(out);
  const isCurrent = (path: string) => readFileSync(path, 'utf8') === wanted.get(relative(out, path));
  if (found.length === wanted.size && found.every(isCurrent)) return;
  rmSync(out, { recursive: true, force: true });
  for (const [path, text] of wanted) {
    mkdirSync(dirname(join(out, path)), { recursive: true });
    writeFileSync(join(out, path), text);
  }
}

/** Texts of the third-party protos by import path. */
function readThirdPartyProtos(): Map<string, string> {
  const texts = Object.entries(FILES).map(([path, [module, way]]) => {
    const file = join(dirname(fileURLToPath(import.meta.resolve(module))), way);
    return [path, readFileSync(file, 'utf8')] as const;
  });
  return new Map([...texts, ['buf/validate/validate.proto', printProto(file_buf_validate_validate)]]);
}
