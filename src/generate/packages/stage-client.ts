import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { base64Encode } from '@bufbuild/protobuf/wire';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { file_buf_validate_validate } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { findImported } from './imported-files.js';
import { CLIENT_ENTRY, clientManifest, readRootManifest } from './manifest.js';
import { stripUnreadOptions } from './strip-options.js';
import { copyFile, writeFile, writeJson } from './write.js';

const PRIMITIVES = 'src/proof/bytes/primitives.js';
const PRIMITIVES_WEB = 'src/proof/bytes/primitives-web.js';
const PRIMITIVES_NODE = 'src/proof/bytes/primitives-node.js';

/** Started by its URL, which is no import. */
const THREAD = 'src/client/files/hash-thread.js';

/** The generated module of `buf/validate/validate.proto`, and the one that takes its place in the package. */
export const RULES = '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
const RULES_STUB = 'gen/buf/validate/validate_pb.js';

const MAY_BE_IN = /^(?:gen|src\/(?:client|proof|protocol))\//;

/**
 * Writes what the package `@attestation-service/client` holds to the folder `out`: the compiled files that the client
 * needs, and nothing of the server. Needs a build. Throws if the client imports more than it may.
 */
export function stageClient({ root, out }: { root: string; out: string }): void {
  const dist = join(root, 'dist');
  const imported = findImported([CLIENT_ENTRY, PRIMITIVES_WEB, THREAD].map((path) => join(dist, path)));
  for (const file of imported.files) {
    const path = relative(dist, file);
    if (!MAY_BE_IN.test(path)) throw new Error(`the client imports ${path}`);
    const code = stripUnreadOptions(readFileSync(file, 'utf8'));
    writeFile(join(out, pathInPackage(path)), withoutRules(path, code));
  }
  // Resolved by the conditions of `imports` in package.json.
  writeFile(join(out, PRIMITIVES), "export * from '#primitives';\n");
  writeFile(join(out, RULES_STUB), rulesStub());
  const packages = imported.packages.filter((name) => !RULES.startsWith(`${name}/`));
  writeJson(join(out, 'package.json'), clientManifest(readRootManifest(root), packages));
  copyFile(join(root, 'src/client/README.md'), join(out, 'README.md'));
  copyFile(join(root, 'LICENSE'), join(out, 'LICENSE'));
}

function pathInPackage(path: string): string {
  return path === PRIMITIVES ? PRIMITIVES_NODE : path;
}

/** Imports of the validation rules become those of the stub. */
function withoutRules(path: string, code: string): string {
  return code.replaceAll(RULES, relative(dirname(path), RULES_STUB));
}

/**
 * A module with a descriptor of `buf/validate/validate.proto` without its content. The generated code lists the file as imported, but
 * the client evaluates no rules: the whole descriptor would be 12 KB of a browser's 57 KB of calls (gzipped), and the
 * package that has it brings two more.
 */
export function rulesStub(): string {
  const { name, package: packageName, syntax } = file_buf_validate_validate.proto;
  const proto = create(FileDescriptorProtoSchema, { name, package: packageName, syntax });
  const descriptor = base64Encode(toBinary(FileDescriptorProtoSchema, proto));
  return [
    "import { fileDesc } from '@bufbuild/protobuf/codegenv2';",
    `export const file_buf_validate_validate = /*@__PURE__*/ fileDesc('${descriptor}');`,
    '',
  ].join('\n');
}
