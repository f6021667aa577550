/** Debian's Python with modules of Debian packages: the system's, or the packages unpacked and not installed. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openCacheDir } from '../../../src/server/embedded/cache.js';
import { fetchDebianPackage } from '../../../src/server/embedded/debian-package.js';

const execute = promisify(execFile);

/** The interpreter that Debian's modules are built for; another one of the PATH may not load them. */
const PYTHON = '/usr/bin/python3';

/** Runs a Python program that can import the modules; returns its standard output. */
export type RunPython = (
  args: readonly string[],
  options?: { cwd?: string; modules?: string; env?: Record<string, string> },
) => Promise<string>;

/**
 * Finds the modules, or fetches the packages that they need beyond a plain system with Python. Throws where there is no
 * Python or apt cannot be used.
 */
export async function openDebianPython({
  modules,
  packages,
}: {
  modules: readonly string[];
  packages: readonly string[];
}): Promise<RunPython> {
  const own = (await areInstalled(modules)) ? {} : await fetchPackages(packages);
  return async (args, { cwd, modules: extra, env } = {}) => {
    const path = [own.PYTHONPATH, extra].filter((part) => part !== undefined).join(':');
    const { stdout } = await execute(PYTHON, args, {
      cwd,
      env: { ...env, ...own, PYTHONPATH: path },
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  };
}

type PythonEnv = { PYTHONPATH?: string; LD_LIBRARY_PATH?: string };

async function areInstalled(modules: readonly string[]): Promise<boolean> {
  return execute(PYTHON, ['-c', `import ${modules.join(', ')}`], { env: {} }).then(
    () => true,
    () => false,
  );
}

async function fetchPackages(packages: readonly string[]): Promise<PythonEnv> {
  const cacheDir = await openCacheDir();
  const trees: string[] = [];
  for (const name of packages) trees.push(await fetchDebianPackage(name, cacheDir));
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
