/** Real processes of the built service for a test: any number of APIs and workers over one database and one NATS. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { Principal } from '../../../src/server/core/principal.js';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { openSecrets } from '../../../src/server/embedded/secrets.js';
import { formatSecretKey, parseKeyRing } from '../../../src/server/keys/key-ring.js';
import { makeKey, makeProject } from '../../../src/server/process/first-keys.js';
import { PROGRAM } from '../calling/run-cli.js';

/** How a process ended. */
export type Exit = { code: number | null; signal: NodeJS.Signals | null };

/** A running `attest api` or `attest worker`. */
export type ServiceProcess = {
  pid: number;
  /** Only an API has one. */
  baseUrl: string;
  opsUrl: string;
  /** Only an API whose admin API has a listener of its own has one. */
  adminUrl: string;
  /** Its log so far, parsed. */
  lines: LogLine[];
  exited: Promise<Exit>;
  /** SIGTERM; waits for its end, and throws unless that was clean. */
  stop(): Promise<void>;
  /** SIGHUP. */
  hangUp(): void;
  /** SIGSTOP, until `goOn`. */
  standStill(): void;
  goOn(): void;
  /** SIGKILL; waits for its end. */
  kill(): Promise<void>;
};

export type LogLine = Record<string, unknown> & { level: string; msg: string };

/** What the processes of one installation share. */
export type Installation = {
  /** Folder of the checkpoint register. */
  register: string;
  databaseUrl: string;
  /** Settings of what is started from now on. */
  env: Record<string, string>;
  /** The test's own connections to the database, past the processes. */
  openPool(): Pool;
  startApi(): Promise<ServiceProcess>;
  startWorker(): Promise<ServiceProcess>;
};

/** The same for every installation, so that API keys can be made without one. */
const SECRET_KEY = formatSecretKey('k1', Buffer.alloc(32, 7));

/** `env` adds settings. */
export type InstallationOptions = {
  servers?: { databaseUrl: string; natsUrl: string };
  env?: Record<string, string>;
};

/**
 * Keys, secrets and a register for processes over these servers; by default over the run's NATS and a new database of the
 * run's Postgres. What it started is killed when the test ends.
 */
export async function makeInstallation(
  test: Pick<Test, 'teardown'>,
  { servers, env = {} }: InstallationOptions = {},
): Promise<Installation> {
  const { databaseUrl, natsUrl } = servers ?? (await runServers(test));
  const dir = await mkdtemp(join(tmpdir(), 'attest-service-'));
  test.teardown(() => rm(dir, { recursive: true, force: true }));
  await openSecrets(dir);
  const keyFiles = (use: string) =>
    ['live', 'test'].map((name) => `${name}=${join(dir, 'secrets', `${use}-${name}.pem`)}`).join(',');
  const installation: Installation = {
    databaseUrl,
    register: env.CHECKPOINT_REGISTER ?? join(dir, 'register'),
    env: {
      DATABASE_URL: databaseUrl,
      NATS_URL: natsUrl,
      DATA_DIR: dir,
      CHECKPOINT_REGISTER: join(dir, 'register'),
      SECRET_KEY,
      ADMIN_TOKEN: 'adm_for_a_test_0123456789abcdef',
      DSSE_KEY_FILE: keyFiles('dsse'),
      LOG_KEY_FILE: keyFiles('log'),
      HOST: '127.0.0.1',
      LOG_DOMAIN: 'log.example.com',
      BATCH_INTERVAL: '50ms',
      ...env,
    },
    openPool: () => {
      const pool = connectPool({ url: databaseUrl, name: 'test', max: 4, statementTimeoutMs: 60_000 });
      test.teardown(() => pool.end({ timeout: 1 }));
      return pool;
    },
    startApi: () => startService(test, 'api', installation.env),
    startWorker: () => startService(test, 'worker', installation.env),
  };
  return installation;
}

/** Imported when needed: it brings tap, which prints a report in a program that is no test. */
async function runServers(test: Pick<Test, 'teardown'>): Promise<{ databaseUrl: string; natsUrl: string }> {
  const { testDatabase } = await import('./shared-servers.js');
  const { testNatsUrl } = await import('./shared-nats.js');
  return { databaseUrl: await testDatabase(test), natsUrl: await testNatsUrl() };
}

const running = new Set<ChildProcess>();
// A file that fails outside its tests runs no teardown.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/**
 * Starts a process with these settings and waits until it is ready; killed when the test ends. Throws when it ends before.
 * `program` is what node runs, by default this version.
 */
export async function startService(
  test: Pick<Test, 'teardown'>,
  role: 'api' | 'worker',
  env: Record<string, string>,
  onLine: (line: LogLine) => void = () => {},
  program: readonly string[] = PROGRAM,
): Promise<ServiceProcess> {
  const ports = role === 'api' ? ['--port', '0', '--ops-port', '0'] : ['--ops-port', '0'];
  const child = spawn(process.execPath, [...program, role, '--json', ...ports], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  const exited = once(child, 'close').then(([code, signal]): Exit => ({ code, signal }));
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    return exited;
  };
  test.teardown(() => end('SIGKILL'));
  const lines = collectLines(child, onLine);
  const ready = once(createInterface({ input: child.stdout! }), 'line');
  const [line] = await Promise.race([ready, exited.then(() => [])]);
  if (line === undefined) throw new Error(`attest ${role} did not start: ${JSON.stringify(lines)}`);
  const { base_url, ops_url, admin_url } = JSON.parse(line);
  return {
    pid: child.pid!,
    baseUrl: base_url ?? '',
    opsUrl: ops_url,
    adminUrl: admin_url ?? '',
    lines,
    exited,
    hangUp: () => void child.kill('SIGHUP'),
    standStill: () => void child.kill('SIGSTOP'),
    goOn: () => void child.kill('SIGCONT'),
    kill: async () => {
      await end('SIGKILL');
    },
    stop: async () => {
      const { code, signal } = await end('SIGTERM');
      if (code !== 0)
        throw new Error(`attest ${role} ended with ${code ?? signal}: ${JSON.stringify(lines)}`);
    },
  };
}

function collectLines(child: ChildProcess, onLine: (line: LogLine) => void): LogLine[] {
  const lines: LogLine[] = [];
  createInterface({ input: child.stderr! }).on('line', (text) => {
    const line: LogLine = text.startsWith('{') ? JSON.parse(text) : { level: 'none', msg: text };
    lines.push(line);
    onLine(line);
  });
  return lines;
}

/** Limits that no test reaches. */
const UNLIMITED = 1_000_000_000;

/** An API key of a new project for the processes of any installation, without limits worth the name but those given. */
export async function makeUnlimitedKey(
  pool: Pool,
  environment: Principal['environment'] = Environment.LIVE,
  { perHour = UNLIMITED, perDay = UNLIMITED }: { perHour?: number; perDay?: number } = {},
): Promise<string> {
  const projectId = await makeProject(pool, 'a test');
  const wanted = { environment, projectId, name: 'a test', scopes: undefined, expiresAt: undefined };
  const { key, row } = await makeKey(pool, parseKeyRing(SECRET_KEY), wanted);
  await pool`
    UPDATE api_key SET submissions_per_second = ${UNLIMITED}, submissions_per_hour = ${perHour},
                       submissions_per_day = ${perDay}, reads_per_second = ${UNLIMITED}
    WHERE id = ${row.id}`;
  return key;
}
