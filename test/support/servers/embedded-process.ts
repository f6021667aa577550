import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';

/** What the child says when its servers run: URLs of those that were wanted; or why they do not. */
export interface ChildAnswer {
  databaseUrl: string;
  natsUrl: string;
  pids: number[];
  code?: string;
  message?: string;
}

export interface ChildUser {
  uid: number;
  gid: number;
}

export interface EmbeddedProcess {
  pid: number;
  answer: Promise<ChildAnswer>;
  /** Its answer, when its servers run; throws what it says when they do not. */
  running(): Promise<ChildAnswer>;
  /** Lets it stop its servers; waits for its end. */
  stop(): Promise<void>;
  /** SIGKILL; its servers are left running. Waits for its end. */
  kill(): Promise<void>;
}

const CHILD = fileURLToPath(new URL(`./embedded-child${extname(import.meta.url)}`, import.meta.url));

/** Starts the servers from a process of its own, optionally as another user and with other environment variables. */
export function startEmbeddedProcess(options: {
  dataDir: string;
  /** The usual place when left out. */
  cacheDir?: string;
  servers: ('postgres' | 'nats')[];
  user?: ChildUser | undefined;
  env?: NodeJS.ProcessEnv;
}): EmbeddedProcess {
  // What runs TypeScript for this process has to run it for the child.
  const loaders = CHILD.endsWith('.ts') ? process.execArgv : [];
  const child = spawn(
    process.execPath,
    [...loaders, CHILD, options.dataDir, options.cacheDir ?? '', ...options.servers],
    {
      // Tap has each process leave a note at its end, in this checkout unless told where; another user cannot write there.
      env: { ...process.env, _TAPJS_PROCESSINFO_CWD_: options.dataDir, ...options.env },
      cwd: '/',
      stdio: ['pipe', 'pipe', 'inherit'],
      ...options.user,
    },
  );
  const ended = once(child, 'close');
  const lines = createInterface({ input: child.stdout! });
  const answer = Promise.race([once(lines, 'line'), ended.then(() => ['{"code":"ended"}'])]).then(
    ([line]) => JSON.parse(line) as ChildAnswer,
  );
  const end = async (act: () => void) => {
    act();
    await ended;
  };
  return {
    pid: child.pid!,
    answer,
    running: async () => {
      const { code, message } = await answer;
      if (code !== undefined) throw new Error(`${code}: ${message}`);
      return answer;
    },
    stop: () => end(() => child.stdin!.end()),
    kill: () => end(() => child.kill('SIGKILL')),
  };
}

/**
 * An ordinary user for a child to run as: `nobody` when this is root and that user can read this checkout. Otherwise
 * undefined, and the child runs as the user of this process, who is an ordinary one unless root's checkout is closed.
 */
export function findOrdinaryUser(): ChildUser | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'nobody'])));
  const user = { uid: uid!, gid: gid! };
  try {
    execFileSync('test', ['-r', CHILD], { cwd: '/', ...user });
    return user;
  } catch {
    return undefined;
  }
}

/** A closed (0700) directory like a home, of `user` when given, removed when the test ends. */
export function closedHome(test: Test, user?: ChildUser): string {
  const home = mkdtempSync(join(tmpdir(), 'attest-home-'));
  test.teardown(() => rmSync(home, { recursive: true, force: true }));
  chmodSync(home, 0o700);
  if (user !== undefined) chownSync(home, user.uid, user.gid);
  return home;
}

/** A directory with the programs of PATH that `accept` accepts: for a child's own PATH. */
export function binDir(test: Test, accept: (name: string) => boolean): string {
  const dir = closedHome(test);
  chmodSync(dir, 0o755);
  for (const source of process.env.PATH!.split(':').filter((path) => existsSync(path))) {
    for (const name of readdirSync(source).filter(accept)) {
      if (!existsSync(join(dir, name))) symlinkSync(join(source, name), join(dir, name));
    }
  }
  return dir;
}
