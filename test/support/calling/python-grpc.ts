/** Debian's Python with grpcio and its code generator. */
import { openDebianPython, type RunPython } from './debian-python.js';

/** `python3-grpc-tools` and what it needs. */
const PACKAGES = [
  'python3-grpc-tools',
  'python3-grpcio',
  'python3-protobuf',
  'libabsl20220623',
  'libc-ares2',
  'libprotobuf32',
  'libre2-9',
];

/** Opens a Python that can import `grpc` and `grpc_tools`. */
export function openPython(): Promise<RunPython> {
  return openDebianPython({ modules: ['grpc', 'grpc_tools.protoc'], packages: PACKAGES });
}
