import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import type { ShutdownHooks } from '../../src/server/core/shutdown.js';
import { connectPool, type Pool } from '../../src/server/database/connect.js';
import { migrate } from '../../src/server/database/migrate.js';
import { openSecrets } from '../../src/server/embedded/secrets.js';
import { makeKey, makeProject } from '../../src/server/process/first-keys.js';
import { openTimestampAuthority } from '../../src/server/timestamp-authority/timestamp-authority.js';
import { startLocalServers } from '../support/servers/local-servers.js';
import { ATTEST, NODE_OPTION, type StartedProcess, startNode } from './process.js';

/** What the measures work with: real servers, and an API key that nothing is refused to. */
export type Services = {
  /** For files; removed at the end. */
  dir: string;
  /** The migrated database of the service. */
  databaseUrl: string;
  apiKey: string;
  projectId: string;
  /** What `attest api` and `attest worker` are started with. */
  env: Record<string, string>;
  /** Makes an empty database and returns its URL. */
  createDatabase: (name: string) => Promise<string>;
  /** The Postgres and the nats-server that all share. */
  pids: { postgres: number; nats: number };
};

const LIMIT = 1_000_000_000;
const WITNESS = 'bench-tsa';

/** Starts Postgres and nats-server and prepares secrets, a witness and a key. */
export async function startServices(hooks: ShutdownHooks): Promise<Services> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-bench-'));
  hooks.add(() => rm(dir, { recursive: true, force: true }));
  // On the disk: a commit in memory would not wait for what makes it durable.
  const servers = await startLocalServers(tmpdir());
  hooks.add(servers.stop);
  const authority = await startAuthority(dir, hooks);
  const createDatabase = (name: string) => makeDatabase(servers.databaseUrl, name);
  const pids = { postgres: servers.postgresPid, nats: servers.natsPid };
  return openService({ dir, createDatabase, pids, natsUrl: servers.natsUrl, authority }, 'service', hooks);
}

/** Another installation beside it, with a database, secrets and a log of its own, on the same servers. */
export async function openAnotherService(
  { dir, createDatabase, pids, env }: Services,
  name: string,
  hooks: ShutdownHooks,
): Promise<Services> {
  const [authority] = JSON.parse(env.WITNESSES ?? '') as object[];
  const parts = { createDatabase, pids, natsUrl: env.NATS_URL ?? '', authority: authority ?? {} };
  return openService({ ...parts, dir: await makeDir(join(dir, name)) }, name, hooks);
}

async function makeDir(dir: string): Promise<string> {
  await mkdir(dir, { recursive: true });
  return dir;
}

type ServiceParts = Pick<Services, 'dir' | 'createDatabase' | 'pids'> & {
  natsUrl: string;
  authority: object;
};

async function openService(parts: ServiceParts, name: string, hooks: ShutdownHooks): Promise<Services> {
  const { dir, createDatabase, natsUrl, authority } = parts;
  const databaseUrl = await createDatabase(name);
  const secrets = await openSecrets(dir);
  const env = {
    DATABASE_URL: databaseUrl,
    NATS_URL: natsUrl,
    WITNESSES: JSON.stringify([authority]),
    CHECKPOINT_REGISTER: join(dir, 'register'),
    LOG_DOMAIN: 'localhost',
    DATA_DIR: dir,
    ...(await secretsEnv(dir)),
    ...PROCESS_ENV,
  };
  const pool = openPool(databaseUrl, hooks);
  await migrate(pool);
  const projectId = await makeProject(pool, 'benchmark');
  const wanted = {
    environment: Environment.LIVE,
    projectId,
    name: 'benchmark',
    scopes: undefined,
    expiresAt: undefined,
  } as const;
  const { key } = await makeKey(pool, secrets.secretKeys, wanted);
  await liftLimits(pool);
  return { dir, databaseUrl, apiKey: key, projectId, env, createDatabase, pids: parts.pids };
}

/** Any free ports, and no request log: writing it to a pipe that this process reads would be measured too. */
export const PROCESS_ENV = { HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', LOG_LEVEL: 'warn' };

/** Starts `attest api` or `attest worker`. */
export function startRole(
  { env }: Pick<Services, 'env'>,
  role: 'api' | 'worker',
  {
    nodeArgs = [],
    args = [],
    program = ATTEST,
  }: { nodeArgs?: readonly string[]; args?: readonly string[]; program?: string } = {},
): Promise<StartedProcess> {
  return startNode([program, role, ...args], {
    env,
    nodeArgs: [NODE_OPTION, ...nodeArgs],
  });
}

/** The address in the line `ready <address>`. */
export function readyUrl({ ready }: StartedProcess): string {
  return ready.replace(/^ready /, '');
}

/** Lets every key do as much as it can. */
export async function liftLimits(pool: Pool): Promise<void> {
  await pool`UPDATE api_key SET submissions_per_second = ${LIMIT}, submissions_per_hour = ${LIMIT},
             submissions_per_day = ${LIMIT}, reads_per_second = ${LIMIT}`;
}

/** A pool for preparing and looking, closed at the end. */
export function openPool(url: string, hooks: ShutdownHooks): Pool {
  const pool = connectPool({ url, name: 'bench', max: 4, statementTimeoutMs: 3_600_000 });
  hooks.add(() => pool.end({ timeout: 5 }));
  return pool;
}

async function makeDatabase(serverUrl: string, name: string): Promise<string> {
  const sql = postgres(serverUrl, { max: 1, onnotice: () => {} });
  await sql`CREATE DATABASE ${sql(name)}`.finally(() => sql.end());
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** The secrets that `openSecrets` made below `dir`, as settings. */
async function secretsEnv(dir: string): Promise<Record<string, string>> {
  const path = (name: string) => join(dir, 'secrets', name);
  const text = async (name: string) => (await readFile(path(name), 'utf8')).trim();
  return {
    SECRET_KEY: await text('secret-key'),
    ADMIN_TOKEN: await text('admin-token'),
    DSSE_KEY_FILE: `live=${path('dsse-live.pem')},test=${path('dsse-test.pem')}`,
    LOG_KEY_FILE: `live=${path('log-live.pem')},test=${path('log-test.pem')}`,
  };
}

/** The authority that `attest up` embeds, over HTTP, as an entry of WITNESSES. */
async function startAuthority(dir: string, hooks: ShutdownHooks): Promise<object> {
  const authority = await openTimestampAuthority({
    dir: join(dir, 'timestamp-authority'),
    clock: () => new Date(),
    randomBytes,
  });
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    res.setHeader('content-type', 'application/timestamp-reply');
    res.end(await authority.respond(Buffer.concat(chunks)));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  hooks.add(async () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  await mkdir(dir, { recursive: true });
  const chainFile = join(dir, 'chain.pem');
  await writeFile(chainFile, authority.certChainPem.join('\n'));
  return { name: WITNESS, kind: 'rfc3161', url: `http://127.0.0.1:${port}/`, chain_file: chainFile };
}
