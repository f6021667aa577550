import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { file_buf_validate_validate } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { filesIn } from './files-in.js';
import { printProto } from './print-proto.js';

/** The protos of Google's that ours import; `google-gax` carries them as files. */
const GOOGLE_API = ['annotations.proto', 'http.proto', 'httpbody.proto'];

/**
 * Writes the third-party protos that ours import into `<root>/.protos`, from npm packages only: `google/api` as
 * files, `buf/validate` printed from the descriptor that `@bufbuild/protovalidate` carries. A folder that holds just
 * these is left alone, so that another process can go on reading it.
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

/** Their texts by their import paths. */
function readThirdPartyProtos(): Map<string, string> {
  const gax = join(dirname(fileURLToPath(import.meta.resolve('google-gax'))), '..', 'protos');
  const google = GOOGLE_API.map((name) => `google/api/${name}`);
  return new Map([
    ...google.map((path) => [path, readFileSync(join(gax, path), 'utf8')] as const),
    ['buf/validate/validate.proto', printProto(file_buf_validate_validate)],
  ]);
}
