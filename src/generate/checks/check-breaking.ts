import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { buf } from '../protos/buf.js';
import { type Finding, findOutput, findProblem, isProgram } from './finding.js';

/** Files of an earlier commit that `buf` needs to parse its protos. */
const NEEDED = ['proto', 'buf.yaml'];

/** Where main is known, nearest first. */
const MAINS = ['origin/main', 'main'];

/**
 * Holds the protos at `root` against those of an earlier commit, by the rules for breaking changes in `buf.yaml`: the
 * commit where this line of work left main or, on main itself, the newest one. Passes when there is nothing to
 * compare with. `scratch` is an empty folder. Needs the third-party protos at `root`.
 */
export function checkBreaking({ root, scratch }: { root: string; scratch: string }): Finding {
  if (!existsSync(join(root, '.git'))) return { note: 'no git history to compare with' };
  if (!isProgram('git')) return { note: 'no git to read the history with' };
  const git = (...args: string[]) => findOutput(root, 'git', args);
  const broken = findProblem(root, 'git', ['rev-parse', '--git-dir']);
  if (broken !== undefined) return { problem: broken };
  const base = findBase(git);
  if (base === undefined) return { note: 'no commit to compare with' };
  const found = git('ls-tree', '--name-only', base, ...NEEDED)?.split('\n') ?? [];
  const name = base.slice(0, 10);
  if (NEEDED.some((path) => !found.includes(path))) return { note: `no protos at ${name} to compare with` };
  const problem =
    unpack({ root, scratch, commit: base }) ??
    buf(root, 'breaking', 'proto', '--against', join(scratch, 'proto'));
  return problem === undefined ? { note: `compared with ${name}` } : { problem };
}

function findBase(git: (...args: string[]) => string | undefined): string | undefined {
  const head = git('rev-parse', '--verify', '--quiet', 'HEAD');
  const forks = MAINS.map((main) => git('merge-base', 'HEAD', main));
  return forks.find((fork) => fork !== undefined && fork !== head) ?? head;
}

/** Writes a commit's protos to a folder. The third-party ones are not in git, so today's stand in for them. */
function unpack(options: { root: string; scratch: string; commit: string }): string | undefined {
  const { root, scratch, commit } = options;
  const archive = join(scratch, 'archive.tar');
  symlinkSync(join(root, '.protos'), join(scratch, '.protos'));
  return (
    findProblem(root, 'git', ['archive', '--format=tar', '-o', archive, commit, '--', ...NEEDED]) ??
    findProblem(scratch, 'tar', ['-xf', archive])
  );
}
