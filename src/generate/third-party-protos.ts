import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { file_buf_validate_validate } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { printProto } from './print-proto.js';

/** The protos of Google's that ours import; `google-gax` carries them as files. */
const GOOGLE_API = ['annotations.proto', 'http.proto', 'httpbody.proto'];

/**
 * Writes the third-party protos that ours import into `<root>/.protos`, from npm packages only: `google/api` as
 * files, `buf/validate` printed from the descriptor that `@bufbuild/protovalidate` carries.
 */
export function writeThirdPartyProtos(root: string): void {
  const out = join(root, '.protos');
  rmSync(out, { recursive: true, force: true });
  mkdirSync(join(out, 'google/api'), { recursive: true });
  mkdirSync(join(out, 'buf/validate'), { recursive: true });
  const gax = join(dirname(fileURLToPath(import.meta.resolve('google-gax'))), '..', 'protos');
  for (const name of GOOGLE_API) cpSync(join(gax, 'google/api', name), join(out, 'google/api', name));
  writeFileSync(join(out, 'buf/validate/validate.proto'), printProto(file_buf_validate_validate));
}
