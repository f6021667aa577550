/** The service itself in this process: API and worker over the run's Postgres and NATS, with a witness that obeys. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import type { Test } from 'tap';
import { WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { type Config, readConfig } from '../../src/config/config.js';
import { createLogger, type Logger } from '../../src/server/core/logger.js';
import { createShutdownHooks, type ShutdownHooks } from '../../src/server/core/shutdown.js';
import { openSecrets } from '../../src/server/embedded/secrets.js';
import type { WitnessSetup } from '../../src/server/logs/set-up-witnesses.js';
import { type Check, isReady } from '../../src/server/ops/ops-listener.js';
import { findDueJobs } from '../../src/server/pipeline/jobs/reconcile.js';
import { openRegister } from '../../src/server/pipeline/register/open-register.js';
import { runJob } from '../../src/server/pipeline/stages.js';
import { startApi } from '../../src/server/process/api.js';
import { openWitnesses } from '../../src/server/process/open-witnesses.js';
import { startWorker, type Worker } from '../../src/server/process/worker.js';
import { connectPool, type Pool } from '../../src/server/store/database/connect.js';
import { LogLock, listLogs } from '../../src/server/store/log/logs.js';
import { openTimestampAuthority } from '../../src/server/timestamp-authority/timestamp-authority.js';
import { rfc3161Witness } from '../../src/server/witness/rfc3161.js';
import { startProxy, type TcpProxy } from './breaking/proxy.js';
import { type RestAnswer, type RestOptions, rest, type Surface, surfacesOf } from './calling/rpc-clients.js';
import { createRecorder, type Recorder } from './judging/recorder.js';
import { testDatabase, testNatsPrefix, testServers } from './servers/shared-servers.js';

/** The address that events of the worker speak of. */
const EVENT_BASE_URL = 'https://api.example.com';

/** How a witness meets the questions of the worker. */
export type TestWitness = {
  name: string;
  /** Leaves questions unanswered until `release`. */
  hold(): void;
  release(): void;
  /** Refuses every question. */
  isBroken: boolean;
  /** How far its clock is ahead. */
  clockOffsetMs: number;
};

export type AppOptions = {
  /** How many API processes' worth. */
  apis?: number;
  /** Names of the witnesses beside those of WITNESSES, all required; one by default. */
  witnesses?: readonly string[];
  witnessDeadlineMs?: number;
  /** Further settings; the witnesses of WITNESSES are asked beside those that the test controls. */
  env?: Record<string, string>;
  /** Whether the service reaches its database through `databaseProxy`. */
  isProxied?: boolean;
  /** Another nats-server than the run's. */
  natsUrl?: string;
  /** Whether the service is without an admin token. */
  isWithoutAdmin?: boolean;
};

/** The running service and what a test does with it. */
export type App = {
  config: Config;
  baseUrl: string;
  /** Of every API, the first being `baseUrl`. */
  baseUrls: string[];
  verifyUrl: string;
  pool: Pool;
  queuePrefix: string;
  register: string;
  witnesses: TestWitness[];
  recorder: Recorder;
  /** Between the service and its database, when asked for; the test's own pool goes past it. */
  databaseProxy: TcpProxy | undefined;
  /** One REST request of the first API. */
  rest(path: string, options?: RestOptions): Promise<RestAnswer>;
  /** REST, Connect and gRPC on the first API, or another. */
  surfaces(baseUrl?: string): Surface[];
  /** Runs what the tables say is due until nothing is, and no witness is being asked. */
  drain(): Promise<void>;
  /**
   * Starts the worker anew with these witnesses in place of `witnesses`; a name has the keys that it had, or those of
   * another one.
   */
  changeWitnesses(names: readonly string[], keysOf?: Record<string, string>): Promise<void>;
  /** Keeps every log from being sealed until the function it returns is called. */
  holdSealing(): Promise<() => Promise<void>>;
};

/** Starts it until the test ends. */
export async function startApp(t: Test, options: AppOptions = {}): Promise<App> {
  const natsUrl = options.natsUrl ?? (await testServers()).natsUrl;
  const databaseUrl = await testDatabase(t);
  const queuePrefix = testNatsPrefix(t);
  const dir = await mkdtemp(join(tmpdir(), 'attest-app-'));
  const hooks = createShutdownHooks();
  t.teardown(async () => {
    await hooks.run();
    await rm(dir, { recursive: true });
  });
  const { proxy, url } = await proxied(databaseUrl, options.isProxied === true, hooks);
  const made = await makeConfig(dir, { databaseUrl: url, natsUrl }, options.env ?? {});
  const config = options.isWithoutAdmin ? withoutAdmin(made) : made;
  const recorder = createRecorder();
  const log = createLogger({ level: 'trace', destination: lineStream(recorder) });
  const register = await openRegister(config.checkpointRegister);
  const shared = { config, queuePrefix, register, log };
  const startWitnessed = async (wanted: readonly string[], keysOf: Record<string, string> = {}) => {
    const { names, setups } = await makeWitnesses(dir, wanted, keysOf);
    const own = createShutdownHooks();
    hooks.add(own.run);
    const configured = openWitnesses(config.witnesses);
    const worker = await startTestWorker(shared, [...setups, ...configured], options, own);
    own.add(async () => {
      for (const witness of names) witness.release();
    });
    return { names, worker, stop: own.run };
  };
  let running = await startWitnessed(options.witnesses ?? ['self-tsa']);
  const baseUrls: string[] = [];
  for (let i = 0; i < (options.apis ?? 1); i++) baseUrls.push(await listen(shared, hooks));
  const [baseUrl = ''] = baseUrls;
  const pool = connectPool({ url: databaseUrl, name: 'test', max: 4, statementTimeoutMs: 60_000 });
  hooks.add(() => pool.end({ timeout: 1 }));
  const app: App = {
    config,
    baseUrl,
    baseUrls,
    verifyUrl: `${baseUrl}/verify`,
    pool,
    queuePrefix,
    register: folderOf(config),
    witnesses: running.names,
    recorder,
    databaseProxy: proxy,
    rest: (path, request) => rest(baseUrl, recorder, path, request),
    surfaces: (of = baseUrl) => {
      const surfaces = surfacesOf(of, recorder);
      for (const { close } of surfaces) hooks.add(async () => close());
      return surfaces;
    },
    drain: () => drain(running.worker),
    changeWitnesses: async (names, keysOf) => {
      await running.stop();
      running = await startWitnessed(names, keysOf);
      app.witnesses = running.names;
    },
    holdSealing: () => holdSealing(pool),
  };
  return app;
}

/** The register's folder. */
function folderOf({ checkpointRegister }: Config): string {
  if (typeof checkpointRegister !== 'string') throw new Error('the register of this app is no folder');
  return checkpointRegister;
}

type Shared = {
  config: Config;
  queuePrefix: string;
  register: Awaited<ReturnType<typeof openRegister>>;
  log: Logger;
};

async function proxied(
  databaseUrl: string,
  isWanted: boolean,
  hooks: ShutdownHooks,
): Promise<{ proxy: TcpProxy | undefined; url: string }> {
  if (!isWanted) return { proxy: undefined, url: databaseUrl };
  const url = new URL(databaseUrl);
  const proxy = await startProxy({ host: url.hostname, port: Number(url.port) });
  hooks.add(proxy.close);
  url.host = `127.0.0.1:${proxy.port}`;
  return { proxy, url: url.href };
}

async function makeConfig(
  dir: string,
  servers: { databaseUrl: string; natsUrl: string },
  env: Record<string, string>,
): Promise<Config> {
  const settings = {
    DATA_DIR: dir,
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_DOMAIN: 'log.example.com',
    BATCH_INTERVAL: '10ms',
    LOG_LEVEL: 'trace',
    ...env,
  };
  const config = readConfig(settings, { process: 'up' });
  return { ...config, ...servers, secrets: await openSecrets(dir, config.secrets) };
}

function withoutAdmin(config: Config): Config {
  return { ...config, secrets: { ...config.secrets, adminToken: undefined } };
}

async function listen({ config, queuePrefix, register, log }: Shared, hooks: ShutdownHooks): Promise<string> {
  let baseUrl = '';
  const checks: Check[] = [];
  const options = {
    config,
    queuePrefix,
    register,
    log,
    baseUrl: () => baseUrl,
    verifyUrl: () => `${baseUrl}/verify`,
    isReady: () => isReady(checks),
    observe: () => {},
  };
  const api = await startApi(options, hooks);
  checks.push(...api.checks);
  const { port } = await api.server.listen({ host: config.host, port: 0 });
  baseUrl = `http://localhost:${port}`;
  return baseUrl;
}

function startTestWorker(
  { config, queuePrefix, register, log }: Shared,
  witnesses: readonly WitnessSetup[],
  { witnessDeadlineMs = config.witnessDeadlineMs }: AppOptions,
  hooks: ShutdownHooks,
): Promise<Worker> {
  const options = {
    config: { ...config, witnessDeadlineMs },
    baseUrl: () => EVENT_BASE_URL,
    queuePrefix,
    register,
    witnesses,
    log,
    observeAlarm: () => {},
    observeAttempts: () => {},
    observeShipments: () => {},
  };
  return startWorker(options, hooks);
}

/** Time-stamping authorities like the one of `attest up`, each with its own CA. */
async function makeWitnesses(
  dir: string,
  names: readonly string[],
  keysOf: Record<string, string>,
): Promise<{ names: TestWitness[]; setups: WitnessSetup[] }> {
  const made = await Promise.all(names.map((name) => makeWitness(join(dir, keysOf[name] ?? name), name)));
  return { names: made.map(({ witness }) => witness), setups: made.map(({ setup }) => setup) };
}

async function makeWitness(
  dir: string,
  name: string,
): Promise<{ witness: TestWitness; setup: WitnessSetup }> {
  const clock = () => new Date(Date.now() + witness.clockOffsetMs);
  let open = () => {};
  let opened = Promise.resolve();
  const witness: TestWitness = {
    name,
    isBroken: false,
    clockOffsetMs: 0,
    hold: () => {
      opened = new Promise((resolve) => {
        open = resolve;
      });
    },
    release: () => open(),
  };
  const authority = await openTimestampAuthority({ dir, clock, randomBytes });
  const { certChain, certChainPem, policyOid } = authority;
  const send = async (query: Uint8Array) => {
    if (witness.isBroken) throw new Error('the authority is out of order');
    await opened;
    return authority.respond(query);
  };
  const setup: WitnessSetup = {
    witness: rfc3161Witness({ send, randomBytes }, { name, chains: [certChain], policyOid }),
    kind: WitnessKind.RFC3161,
    environments: [Environment.LIVE, Environment.TEST],
    required: true,
    everyMs: 0,
    authority: { url: '', operator: 'self', certChainsPem: [certChainPem] },
  };
  return { witness, setup };
}

/**
 * Settling is looked at as long as a batch waits for a witness that is not due; alone it is nothing to wait for. The
 * worker itself may be at work, too: it is quiet when nothing at all was done while this looked.
 */
async function drain({ pipeline }: Worker): Promise<void> {
  for (;;) {
    const before = await readProgress(pipeline.pool);
    const due = await findDueJobs(pipeline);
    await Promise.all(due.map((job) => runJob(pipeline, job)));
    await untilNobodySettles(pipeline.pool);
    const left = [...due, ...(await findDueJobs(pipeline))];
    const after = await readProgress(pipeline.pool);
    const isQuiet = before.leases === 0 && before.steps === after.steps;
    if (isQuiet && left.every(({ stage }) => stage.case === 'settle')) return;
  }
}

/** How many steps were done so far, of any stage, and how many witnesses, webhooks and exports are being asked, sent or shipped. */
async function readProgress(pool: Pool): Promise<{ steps: number; leases: number }> {
  const [row] = await pool<{ steps: number; leases: number }[]>`
    SELECT (coalesce(sum(attempt), 0)
            + (SELECT count(*) + count(registered_at) FROM batch)
            + (SELECT count(*) + count(*) FILTER (WHERE notified) FROM batch_transition))::int AS steps,
           count(*) FILTER (WHERE leased_until > clock_timestamp())::int AS leases
    FROM (SELECT attempt, leased_until FROM witness_state UNION ALL SELECT lease, leased_until FROM webhook
          UNION ALL SELECT lease, leased_until FROM export) w`;
  if (row === undefined) throw new Error('nothing was counted');
  return row;
}

/** Waits for the rows that a settling job has locked: another one passes them over. */
async function untilNobodySettles(pool: Pool): Promise<void> {
  await pool`SELECT FROM batch WHERE status <> 2 ORDER BY log_id, tree_size FOR UPDATE`;
}

async function holdSealing(pool: Pool): Promise<() => Promise<void>> {
  const logs = await listLogs(pool);
  const connection = await pool.reserve();
  for (const { id } of logs) await connection`SELECT pg_advisory_lock(${LogLock.SEAL}, ${id})`;
  return async () => {
    await connection`SELECT pg_advisory_unlock_all()`;
    connection.release();
  };
}

function lineStream(recorder: Recorder): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      recorder.logged(chunk.toString());
      done();
    },
  });
}
