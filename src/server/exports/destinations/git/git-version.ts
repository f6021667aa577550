import { DestinationError } from '../destination.js';
import { runCommand } from './command.js';
import type { GitUrl } from './git-url.js';

/** The first version with `http.curloptResolve`, which pins addresses. */
const OLDEST = { major: 2, minor: 37 };

/** Rejects with `DestinationError` if the programs that a transport needs are missing or too old. */
export async function assertGitVersion(
  { path, directory, stallMs }: { path: string; directory: string; stallMs: number },
  scheme: GitUrl['scheme'],
): Promise<void> {
  const run = (file: string, args: string[]) =>
    runCommand({
      file,
      args,
      env: { PATH: path, LC_ALL: 'C' },
      cwd: directory,
      signal: new AbortController().signal,
      what: `${file} ${args[0]}`,
      stallMs,
      totalMs: stallMs,
    });
  const { stdout } = await run('git', ['version']);
  const [major = 0, minor = 0] = (/\d+\.\d+/.exec(stdout)?.[0] ?? '').split('.').map(Number);
  if (major < OLDEST.major || (major === OLDEST.major && minor < OLDEST.minor)) {
    const needed = `${OLDEST.major}.${OLDEST.minor}`;
    throw new DestinationError(
      `the git of the service's machine is too old (${stdout.trim()}): its operator must install the package git, ${needed} or newer`,
    );
  }
  if (scheme === 'ssh') await run('ssh', ['-V']);
}
