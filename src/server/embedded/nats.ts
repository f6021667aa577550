import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../core/files/write-file-atomic.js';
import type { DataDir } from './data-dir.js';
import { EmbeddedError } from './embedded-error.js';
import { getNatsProgram, NATS_PROGRAM } from './nats-program.js';
import type { LocalServer } from './postgres.js';
import { type ServerLog, type ServerProcess, startServerProcess } from './server-process.js';
import { type StopSteps, stopLeftovers } from './stop-process.js';

const USER = 'attest';

const STOP_STEPS: StopSteps = [
  { signal: 'SIGINT', waitMs: 20_000 },
  { signal: 'SIGKILL', waitMs: 10_000 },
];

export interface NatsOptions {
  /** Locked by the caller, who releases it after `stop`. */
  dataDir: DataDir;
  /** Where programs may be put; a usual place when left out. */
  cacheDir?: string;
  log: ServerLog;
  /** A new password of URL-safe characters. */
  randomPassword?: () => string;
}

/**
 * Starts nats-server with JetStream over `<data dir>/nats` on a free port of 127.0.0.1. Its password is new at each
 * start. The program is the one on PATH, else Debian's package, unpacked into the cache. A server that a killed
 * process left running there is stopped first. Throws EmbeddedError when it cannot be had or started.
 */
export async function startNats(options: NatsOptions): Promise<LocalServer> {
  const { dataDir, log, randomPassword = () => randomBytes(24).toString('hex') } = options;
  const file = await getNatsProgram(options.cacheDir);
  const dir = join(dataDir.path, 'nats');
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await stopLeftovers({ log }, dir, NATS_PROGRAM, STOP_STEPS);
  const password = randomPassword();
  await writeFileAtomic(join(dir, 'server.conf'), configuration(password));
  const { port, server } = await start({ log }, file, dir);
  return { ...server, url: `nats://${USER}:${password}@127.0.0.1:${port}` };
}

function configuration(password: string): string {
  return [
    'listen: "127.0.0.1:-1"',
    `authorization { user: "${USER}", password: "${password}" }`,
    'jetstream { store_dir: "." }',
    'logtime: false',
    '',
  ].join('\n');
}

async function start({ log }: { log: ServerLog }, file: string, dir: string) {
  let port = '';
  const server: ServerProcess = await startServerProcess(
    { log },
    {
      name: NATS_PROGRAM,
      file,
      args: ['--config', 'server.conf'],
      cwd: dir,
      stopSteps: STOP_STEPS,
      levelOf,
      isReady: (line) => {
        port = /Listening for client connections on 127\.0\.0\.1:(\d+)/.exec(line)?.[1] ?? port;
        return port !== '' && line.includes('Server is ready');
      },
      explainFailure: (lines) => {
        const message = `The local nats-server in ${dir} does not start: ${lines.slice(-3).join(' ')}`;
        return new EmbeddedError('start_failed', message);
      },
    },
  );
  return { port, server };
}

function levelOf(line: string): keyof ServerLog {
  if (/\[(ERR|FTL)\]/.test(line)) return 'error';
  // The password in its file (0600) is new at each start; hashing it would gain nothing.
  if (line.includes('Plaintext passwords detected')) return 'debug';
  return line.includes('[WRN]') ? 'warn' : 'debug';
}
