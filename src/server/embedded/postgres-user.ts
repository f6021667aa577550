import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { EmbeddedError } from './embedded-error.js';
import type { ServerUser } from './server-process.js';

const execute = promisify(execFile);

const NAME = 'postgres';
const ATTEMPTS = 5;
const RETRY_MS = 200;

/**
 * The user that runs Postgres: undefined (this process's user), or the system user `postgres`, created if it is missing,
 * if this process runs as root, which Postgres rejects.
 */
export async function findPostgresUser(): Promise<ServerUser | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  return (await findUser()) ?? (await createUser());
}

async function createUser(): Promise<ServerUser> {
  let reason: unknown;
  // Two starts may create the user concurrently: one finds the user files locked, or the user present.
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const flags = ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent'];
    await execute('useradd', [...flags, '--shell', '/usr/sbin/nologin', NAME]).catch((error) => {
      reason = error;
    });
    const user = await findUser();
    if (user !== undefined) return user;
    await delay(RETRY_MS);
  }
  const message = `Postgres does not run as root, and the system user "${NAME}" it would run as cannot be made`;
  const advice = 'Make that user, run as an ordinary user, or set DATABASE_URL.';
  throw new EmbeddedError('user_missing', `${message}: ${(reason as Error).message}. ${advice}`, {
    cause: reason,
  });
}

async function findUser(): Promise<ServerUser | undefined> {
  try {
    const [uid, gid] = await Promise.all([execute('id', ['-u', NAME]), execute('id', ['-g', NAME])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    return undefined;
  }
}
