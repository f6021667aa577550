/** Debian's Python with grpcio and its code generator: the system's, or its packages unpacked and not installed. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openCacheDir } from '../../src/server/embedded/cache.js';
import { fetchDebianPackage } from '../../src/server/embedded/debian-package.js';

const execute = promisify(execFile);

/** The interpreter that Debian's modules are built for; another one of the PATH may not load them. */
const PYTHON = '/usr/bin/python3';
/** `python3-grpc-tools` and what it needs beyond a plain system with Python. */
const PACKAGES = [
  'python3-grpc-tools',
  'python3-grpcio',
  'python3-protobuf',
  'libabsl20220623',
  'libc-ares2',
  'libprotobuf32',
  'libre2-9',
];

/** Runs a Python program that can import `grpc` and `grpc_tools`. */
export type RunPython = (
  args: readonly string[],
  options?: { cwd?: string; modules?: string; env?: Record<string, string> },
) => Promise<string>;

/** Finds it, or fetches what is missing. Throws where there is no Python or apt cannot be used. */
export async function openPython(): Promise<RunPython> {
  const own = (await findInstalled()) ?? (await fetchPackages());
  return async (args, { cwd, modules, env } = {}) => {
    const path = [own.PYTHONPATH, modules].filter((part) => part !== undefined).join(':');
    const { stdout } = await execute(PYTHON, args, { cwd, env: { ...env, ...own, PYTHONPATH: path } });
    return stdout;
  };
}

type PythonEnv = { PYTHONPATH?: string; LD_LIBRARY_PATH?: string };

async function findInstalled(): Promise<PythonEnv | undefined> {
  return execute(PYTHON, ['-c', 'import grpc, grpc_tools.protoc'], { env: {} }).then(
    () => ({}),
    () => undefined,
  );
}

async function fetchPackages(): Promise<PythonEnv> {
  const cacheDir = await openCacheDir();
  const trees: string[] = [];
  for (const name of PACKAGES) trees.push(await fetchDebianPackage(name, cacheDir));
  const { stdout } = await execute(PYTHON, [
    '-c',
    'import sysconfig; print(sysconfig.get_config_var("MULTIARCH"))',
  ]);
  const inTrees = (path: string) => trees.map((tree) => join(tree, path)).join(':');
  return {
    PYTHONPATH: inTrees('usr/lib/python3/dist-packages'),
    LD_LIBRARY_PATH: inTrees(join('usr/lib', stdout.trim())),
  };
}
