/** Patroni, of PyPI: Debian's is older. */
import { execFile } from 'node:child_process';
import { accessSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cached, openCacheDir } from '../../../../src/server/embedded/cache.js';
import { lastLine } from '../../../../src/server/embedded/debian-package.js';

const execute = promisify(execFile);

/** With the client of etcd's third protocol, and a driver that needs no libpq of the system. */
const PACKAGES = ['patroni[etcd3]==4.1.5', 'psycopg[binary]==3.3.9'];

/** The system's comes first: any user can run it. */
const PYTHONS = ['/usr/bin/python3', '/usr/local/bin/python3'];

/**
 * The path of a Python that has the modules `patroni` and `patroni.ctl`, any user's to run. A test that imports this is
 * skipped where it cannot be had.
 */
export async function patroniPython(): Promise<string> {
  const python = PYTHONS.find(isThere) ?? 'python3';
  try {
    const { stdout } = await execute(python, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])']);
    const name = `patroni-4.1.5-python-${stdout.trim()}`;
    const venv = await cached(await openCacheDir(), name, async (dir) => {
      await execute(python, ['-m', 'venv', dir]);
      await execute(join(dir, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', ...PACKAGES]);
    });
    return join(venv, 'bin', 'python');
  } catch (cause) {
    const message = `There is no patroni; install python3-venv (${lastLine(cause)})`;
    throw new Error(message, { cause });
  }
}

function isThere(path: string): boolean {
  try {
    accessSync(path);
    return true;
  } catch {
    return false;
  }
}
